package nemesis

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/test/harness"
)

// Memories of nodes. Where there is little, most of what a migration finds is on disk, or in the shared tier only.
var memories = []string{"plenty", "little", "little and a shared tier"}

// forwarding has nodes answer for all keys.
const forwarding = "--proxy=true"

// varied are options of a cluster with the settings that migrations depend on, chosen at random.
func varied(t *testing.T, rng *rand.Rand, o harness.ClusterOptions) harness.ClusterOptions {
	t.Helper()
	o.Args = slices.Clone(o.Args)
	memory := memories[rng.IntN(len(memories))]
	if memory != memories[0] {
		o.Args = append(o.Args, "--memory-limit", "6MiB")
	}
	if memory == memories[2] {
		o.Args = append(o.Args, "--blob-url", "file://"+t.TempDir(), "--disk-limit", "2MiB")
	}
	if rng.IntN(3) == 0 {
		o.Args = append(o.Args, "--ownership-check", "keys")
	}
	if rng.IntN(3) == 0 {
		o.Args = append(o.Args, "--migrate-shared-memory=false")
	}
	if rng.IntN(2) == 0 {
		o.Args = append(o.Args, forwarding)
	}
	t.Logf("memory: %s; %v", memory, o.Args)
	return o
}

// moveOptions are one of the ways to move, with early ownership.
func moveOptions(rng *rand.Rand) meta.MigrationOptions {
	pick := func(all ...string) string { return all[rng.IntN(len(all))] }
	return meta.MigrationOptions{
		PriorityPulls: pick("", "", meta.PriorityPullsSync, meta.PriorityPullsNone),
		Sample:        rng.IntN(2) == 0,
		Cold:          pick("", "", meta.ColdRead, meta.ColdScan),
	}
}
