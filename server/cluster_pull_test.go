package server

import (
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

func TestANodeThatComesBackWaitsForThoseWhoMayKnowMoreOfItsLog(t *testing.T) {
	const log = record.LogID(7)
	for _, c := range []struct {
		name    string
		copies  int
		backups []view.NodeID
		answer  string // who does
		waitFor string
	}{
		{"alone", 0, nil, "", "[]"},
		{"alone until another came", 0, []view.NodeID{"b"}, "b", "[]"},
		{"and that one is silent", 0, []view.NodeID{"b"}, "", "[b]"},
		{"one copy", 1, []view.NodeID{"b", "c"}, "b", "[c]"},
		{"one copy, all answer", 1, []view.NodeID{"b", "c"}, "bc", "[]"},
		{"two copies", 2, []view.NodeID{"b", "c", "d"}, "bd", "[]"},
		{"two copies, two silent", 2, []view.NodeID{"b", "c", "d"}, "d", "[b c]"},
	} {
		known := map[view.NodeID]meta.Node{"a": {ID: "a"}, "b": {ID: "b"}, "c": {ID: "c"}, "d": {ID: "d"}}
		s := &meta.Snapshot{Nodes: known, Logs: map[record.LogID]meta.Log{log: {ID: log, Node: "a", Copies: c.copies, Backups: c.backups}}}
		answered := func(n view.NodeID) bool {
			for _, b := range c.answer {
				if string(b) == string(n) {
					return true
				}
			}
			return false
		}
		waitFor, ok := enough(s, log, answered)
		if got := fmt.Sprint(waitFor); got != c.waitFor || ok != (c.waitFor == "[]") {
			t.Errorf("%s: waits for %s, %v; want %s", c.name, got, ok, c.waitFor)
		}
	}
}
