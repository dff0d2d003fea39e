package server

import (
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// Where logs of others are yet to be replayed, an older version may be there, and its end would hide the newer one.
func TestNothingExpiresWhereANodeDoesNotServeYet(t *testing.T) {
	m, err := view.Initial("n1")
	if err != nil {
		t.Fatal(err)
	}
	half := view.Ranges{{Last: 1<<63 - 1}}
	r := meta.Recovery{Log: 7, Parts: []meta.Part{{Heir: "n1", Ranges: half}}}
	s := &meta.Snapshot{Map: m, Recoveries: map[record.LogID]meta.Recovery{7: r}}
	g := newGate("n1", s)
	check := func(what string, first, last bool) {
		t.Helper()
		if e := g.expires(); e(0) != first || e(^record.Place(0)) != last {
			t.Errorf("%s: records expire at the first place: %v, at the last: %v", what, e(0), e(^record.Place(0)))
		}
	}
	check("while a log is to be replayed", false, true)
	g.serve(inheritance(s, "n1"))
	check("after that", true, true)
	g.withhold(0, half)
	check("where keys are given away", false, true)
}
