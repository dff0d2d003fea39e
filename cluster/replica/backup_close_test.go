package replica_test

import (
	"errors"
	"testing"

	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/engine/record"
)

// closeWhile closes segment 5, and has something happen while the backup looks at it.
func closeWhile(t *testing.T, s *scene, happens func()) error {
	t.Helper()
	x := closedText(logID, 5, 10)
	s.fill(s.connect("b1", logID), x, x.end, roster(1, 9, 5))
	s.hosts["b1"].Looking(happens)
	return s.call("b1", replica.MethodClose, replica.CloseRequest{Log: logID, Segment: 5, Closing: x.closing()}, nil, nil)
}

func TestOthersAreOpenedWhileAClosedReplicaIsLookedAt(t *testing.T) {
	s := newScene(t, 1)
	check(t, closeWhile(t, s, func() { must(s.open("b1", openRequest(6, roster(2, 9, 5, 6))))(t) }))
	s.flushed("b1")
	if m := s.hosts["b1"].Metrics(); m.OpenReplicas != 1 {
		t.Fatalf("%d replicas are open, want the second only", m.OpenReplicas)
	}
}

func TestACloseEndsWithTheLogThatIsRetiredMeanwhile(t *testing.T) {
	s := newScene(t, 1)
	var seen replica.SurveyAnswer
	err := closeWhile(t, s, func() { seen = s.survey("b1", true) })
	if !errors.Is(err, replica.ErrRetired) {
		t.Fatalf("a close of a retired log: %v", err)
	}
	before, after := seen.Replicas[0], s.one("b1")
	if after != before || !after.Sealed || after.State != replica.StateOpen {
		t.Fatalf("a recovery was told %+v, and then there was %+v", before, after)
	}
}

func TestACloseFindsWhatBecameOfTheReplicaMeanwhile(t *testing.T) {
	x := closedText(logID, 5, 10)
	closing := replica.CloseRequest{Log: logID, Segment: 5, Closing: x.closing()}
	for name, c := range map[string]struct {
		happens func(*scene) error
		want    func(error) bool
		again   func(error) bool
	}{
		"discarded": {
			func(s *scene) error {
				return s.call("b1", replica.MethodDiscard, replica.DiscardRequest{Log: logID, Segments: []record.SegmentID{5}, Number: 9}, nil, nil)
			},
			func(err error) bool { return errors.Is(err, replica.ErrNotFound) },
			func(err error) bool { return errors.Is(err, replica.ErrNotFound) },
		},
		"opened again": {
			func(s *scene) error {
				_, err := s.open("b1", openRequest(5, roster(2, 9, 5)))
				return err
			},
			func(err error) bool {
				return err != nil && !errors.Is(err, replica.ErrCorrupt) && !errors.Is(err, replica.ErrNotFound) && !errors.Is(err, replica.ErrStale)
			},
			func(err error) bool { return err == nil },
		},
		"closed": {
			func(s *scene) error { return s.call("b1", replica.MethodClose, closing, nil, nil) },
			func(err error) bool { return err == nil },
			func(err error) bool { return err == nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, 1)
			if err := closeWhile(t, s, func() { check(t, c.happens(s)) }); !c.want(err) {
				t.Fatalf("the close ended with %v", err)
			}
			if err := s.call("b1", replica.MethodClose, closing, nil, nil); !c.again(err) {
				t.Fatalf("the next close ended with %v", err)
			}
		})
	}
}
