package server

import (
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
)

// How many records depend on the source's log is asked for most when the source does not answer.
func TestAMigrationThatWaitsForItsSourceSaysHowManyRecordsAreToCome(t *testing.T) {
	served := time.Now()
	m := meta.Migration{ID: 1, Source: "n1", Target: "n2", Stage: meta.Moving, Served: served, Cold: 900}
	p := meta.MigrationProgress{At: served.Add(time.Second), Stage: "settling", Remaining: 300}
	late := p
	late.Waiting = "n1 does not answer"
	for _, c := range []struct {
		told map[uint64]meta.MigrationProgress
		want string
	}{
		{nil, "settling, 900 cold records to come"},
		{map[uint64]meta.MigrationProgress{1: p}, "settling, 300 cold records to come"},
		{map[uint64]meta.MigrationProgress{1: late}, "settling, 300 cold records to come, waits: n1 does not answer"},
		{map[uint64]meta.MigrationProgress{1: {At: served.Add(time.Second), Stage: "completing"}}, "completing"},
	} {
		all := MigrationsOf(&meta.Snapshot{Migrations: map[uint64]meta.Migration{1: m}, Moves: c.told})
		if len(all) != 1 || all[0].Doing != c.want {
			t.Errorf("%+v, want %q", all, c.want)
		}
	}
}
