package coordinator

import (
	"slices"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// A dead node that owns nothing may still be the source of a migration that settles: then it is recovered, and its backups are needed.
func TestABackupIsNeededByALogThatAMigrationNeeds(t *testing.T) {
	for _, c := range []struct {
		stage meta.Stage
		want  []view.NodeID
	}{
		{meta.Wanted, nil},
		{meta.Moving, []view.NodeID{"source"}},
		{meta.Done, nil},
	} {
		s := &meta.Snapshot{
			Nodes: map[view.NodeID]meta.Node{"source": {ID: "source", Log: 1}, "target": {ID: "target", Log: 2}, "backup": {ID: "backup", Log: 3}},
			Logs:  map[record.LogID]meta.Log{1: {ID: 1, Node: "source", Copies: 1, Backups: []view.NodeID{"backup"}}},
			Migrations: map[uint64]meta.Migration{
				1: {ID: 1, Source: "source", Target: "target", Stage: c.stage},
			},
		}
		if got := holders(s, "backup"); !slices.Equal(got, c.want) {
			t.Errorf("while the migration is %s %v have replicas at the backup, want %v", c.stage, got, c.want)
		}
	}
}
