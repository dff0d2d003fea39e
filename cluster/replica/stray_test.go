package replica_test

import (
	"slices"
	"testing"

	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric"
)

// strayed is a dead log of which b1 and b2 have all: 1 and 2 are closed, 4 has a batch that is not safe. b3 was asked first and
// opened all of them too late: the primary had gone on with the others by then. It turned to b3 again for 3, and died half-way.
func strayed(t *testing.T) (*scene, []*text) {
	t.Helper()
	s := newScene(t, 3)
	three, four := newText(logID, 3), newText(logID, 4)
	three.batch(21, 4, false).batch(22, 4, false)
	four.batch(23, 4, false).batch(26, 4, false)
	texts := []*text{closedText(logID, 1, 1), closedText(logID, 2, 11), three, four}
	r := roster(1, 24, 1, 2, 3, 4)
	for _, to := range []view.NodeID{"b1", "b2"} {
		l := s.connect(to, logID)
		for _, x := range texts {
			if x.closed {
				check(t, s.put(to, x, r))
			} else {
				s.fill(l, x, x.end, r)
			}
		}
	}
	l := s.connect("b3", logID)
	for _, x := range texts {
		must(s.open("b3", openRequest(x.id, r)))(t)
	}
	q := openRequest(3, r)
	q.Creating = true
	if st := l.write(must(s.open("b3", q))(t).Region.At(0), three.bytes[:three.ends[0]]); st != fabric.OK {
		t.Fatal(st)
	}
	return s, texts
}

func TestAReplicaThatWasOpenedForNothingIsNoCopy(t *testing.T) {
	s, texts := strayed(t)
	f := s.find(s.nodes()...)
	cut := must(f.Cut())(t)
	if cut != 24 {
		t.Fatalf("cut %d, want 24: 25 is nowhere", cut)
	}
	got, err := gather(t, s, f, replica.FetchOptions{Ranges: whole, Cut: cut})
	if want := written(whole, cut, texts...); err != nil || !slices.Equal(got, want) {
		t.Fatalf("%d keys, want %d; %v", len(got), len(want), err)
	}
	for _, to := range []view.NodeID{"b1", "b2"} { // They die after they were asked.
		s.hosts[to].stop()
	}
	for _, x := range texts {
		if b, _, err := f.Whole(s.ctx(), x.id); err == nil {
			t.Fatalf("segment %d: %d bytes of it, though nobody is left who has it", x.id, len(b))
		}
	}
}

// The backup was held up with both requests in its queue: it takes them in any order.
func TestAnOpeningThatComesAfterItsDiscardOpensNothing(t *testing.T) {
	s := newScene(t, 1)
	q := openRequest(5, roster(1, 0, 5))
	q.Number = 1
	check(t, s.call("b1", replica.MethodDiscard, replica.DiscardRequest{Log: logID, Segments: []record.SegmentID{5}, Number: 2}, nil, nil))
	if _, err := s.open("b1", q); err == nil || len(s.survey("b1", false).Replicas) != 0 {
		t.Fatalf("a replica that nobody wants was opened: %v", err)
	}
	q.Number = 3
	must(s.open("b1", q))(t)
}
