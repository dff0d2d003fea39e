package bench

import (
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
)

// knownCold are the ways to move records that are not in memory.
var knownCold = []string{"read"}

// coldOptions are those of a migration that moves them so.
func coldOptions(string) meta.MigrationOptions { return meta.MigrationOptions{Sample: true} }

// servedAt is when a migration's target carried all load, if it does.
func servedAt(m meta.Migration) (time.Time, bool) { return m.Ended, m.Stage == meta.Done }

// remaining is how many records a migration's target still needs the source's log for.
func remaining(*meta.Snapshot, uint64) int64 { return 0 }

// coldLeft is how many records were still to follow when the target carried all load.
func coldLeft(meta.Migration) int64 { return 0 }
