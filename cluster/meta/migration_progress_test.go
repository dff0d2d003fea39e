package meta

import (
	"testing"
	"time"
)

func TestWhatRemainsIsKnownBeforeProgressIsTold(t *testing.T) {
	served := time.Now()
	m := Migration{Stage: Moving, Served: served, Cold: 9}
	before := &MigrationProgress{At: served.Add(-time.Second), Stage: "pulling"}
	after := &MigrationProgress{At: served.Add(time.Second), Stage: "settling", Remaining: 4}
	last := &MigrationProgress{At: served.Add(time.Second), Stage: "adopting"}
	for _, c := range []struct {
		progress *MigrationProgress
		want     int64
	}{{nil, 9}, {before, 9}, {after, 4}, {last, 0}} {
		if got := m.Remaining(c.progress); got != c.want {
			t.Errorf("%+v: %d remain, not %d", c.progress, got, c.want)
		}
	}
	m.Stage = Done
	if got := m.Remaining(nil); got != 0 {
		t.Errorf("%d remain of a migration that has ended", got)
	}
}
