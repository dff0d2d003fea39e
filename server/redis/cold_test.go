package redis_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
)

// tightMemory is a store whose memory holds far less than the tests put into it.
func tightMemory(t *testing.T, d store.Durability) store.Options {
	return store.Options{Dir: t.TempDir(), Durability: d, SegmentBytes: 128 << 10, MemoryBytes: 1 << 20, Policy: store.Spill}
}

// The same random commands as in TestRandomCommandsAnswerAsRedisDoes, but over
// many keys and among large values, so that most of what they meet is cold.
func TestRandomCommandsOnColdKeysAnswerAsRedisDoes(t *testing.T) {
	theirs := startRedis(t)
	for _, d := range []store.Durability{store.Checkpoint, store.EverySec} {
		t.Run(d.String(), func(t *testing.T) {
			ours := startOstroOn(t, tightMemory(t, d), redis.Config{})
			g := newGenerator(max(*differentialSeed, 1))
			g.keyCount, g.fillEvery = 2000, 3
			compareServers(t, g, newPair(t, theirs, ours, 2), newPair(t, theirs, ours, 3))
			if n := coldReads(t, ours); n < 100 {
				t.Errorf("only %d records came from disk: the test did not test it", n)
			}
		})
	}
}

func coldReads(t *testing.T, addr string) int {
	t.Helper()
	r, err := dialRaw(t, addr).do("info", "ostro")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(r.text) {
		if n, found := strings.CutPrefix(strings.TrimSpace(line), "cold_reads:"); found {
			reads, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			return reads
		}
	}
	t.Fatal("INFO does not tell the cold reads")
	return 0
}
