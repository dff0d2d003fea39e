package replica_test

import (
	"testing"

	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/engine/record"
)

// A primary that heard no answer opens the replica anew; then the network is whole again, and what it had sent before arrives.
func TestADiscardThatComesLateDropsNothingThatWasOpenedSince(t *testing.T) {
	s := newScene(t, 1)
	has := func() int { return len(s.survey("b1", false).Replicas) }
	discard := func(number uint64) {
		t.Helper()
		check(t, s.call("b1", replica.MethodDiscard, replica.DiscardRequest{Log: logID, Segments: []record.SegmentID{5}, Number: number}, nil, nil))
	}
	q := openRequest(5, roster(1, 0, 5))
	q.Number = 1
	must(s.open("b1", q))(t)
	q.Number = 3
	must(s.open("b1", q))(t)
	if discard(2); has() != 1 {
		t.Fatal("a discard of an earlier opening dropped the replica")
	}
	q.Number = 1
	must(s.open("b1", q))(t)
	if discard(2); has() != 1 {
		t.Fatal("an opening that came late was taken for the newest")
	}
	if discard(4); has() != 0 {
		t.Fatal("a discard that was sent after all openings dropped nothing")
	}
}
