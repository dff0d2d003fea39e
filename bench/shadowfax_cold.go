package bench

import (
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
)

// knownCold are the ways to move records that are not in memory, the usual one first.
var knownCold = []string{meta.ColdIndirect, meta.ColdRead, meta.ColdScan}

// coldOptions are those of a migration that moves them so.
func coldOptions(mode string) meta.MigrationOptions {
	return meta.MigrationOptions{Sample: true, Cold: mode}
}

// servedAt is when a migration's target carried all load, if it does.
func servedAt(m meta.Migration) (time.Time, bool) {
	if !m.Served.IsZero() {
		return m.Served, m.Moved()
	}
	return m.Ended, m.Moved()
}

// remaining is how many records a migration's target still needs the source's log for.
func remaining(s *meta.Snapshot, id uint64) int64 { return s.Moves[id].Remaining }

// coldLeft is how many records were still to follow when the target carried all load.
func coldLeft(m meta.Migration) int64 { return m.Cold }
