package server

import (
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// What the ledger says of copies counts those at nodes that are gone until others were made.
func TestALogWhoseBackupIsGoneIsDegradedUntilItsCopiesAreElsewhere(t *testing.T) {
	owners, err := view.Initial("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		backups  []view.NodeID
		degraded bool
	}{
		{[]view.NodeID{"b", "c"}, false},
		{[]view.NodeID{"b", "c", "dead"}, true},
		{[]view.NodeID{"b", "c", "b~00000001"}, true}, // It lost what it had, and lives.
	} {
		s := &meta.Snapshot{
			Settings: meta.Settings{Replicas: 3}, Map: owners, Coordinator: "a",
			Nodes: map[view.NodeID]meta.Node{"a": {ID: "a", Log: 1}, "b": {ID: "b"}, "c": {ID: "c"}, "dead": {ID: "dead"}},
			Alive: map[view.NodeID]meta.Presence{"a": {}, "b": {}, "c": {}},
			Logs:  map[record.LogID]meta.Log{1: {ID: 1, Node: "a", Copies: 2, Backups: c.backups}},
		}
		status := StatusOf(s, nil, nil)
		told := strings.Contains(strings.Join(status.Problems, "\n"), "are being made anew")
		if len(status.Logs) != 1 || status.Logs[0].Degraded != c.degraded || told != c.degraded {
			t.Errorf("with backups %v: %+v, problems %q", c.backups, status.Logs, status.Problems)
		}
	}
}
