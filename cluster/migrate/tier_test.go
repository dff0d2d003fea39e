package migrate

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// alike finds two keys that an index cannot tell apart without their records.
func alike(t *testing.T) (one, other string) {
	t.Helper()
	seen := map[record.Place]string{}
	for i := range 1_000_000 {
		key := fmt.Sprintf("{tag}%d", i)
		known := index.Known(record.PlaceOf(0, []byte(key)))
		if one, ok := seen[known]; ok {
			return one, key
		}
		seen[known] = key
	}
	t.Fatal("all keys have known bits of their own")
	return "", ""
}

// entryOf is the entry of a key at the source, as it lies in a file.
func entryOf(t *testing.T, source *store.Store, key string) (entry []byte) {
	t.Helper()
	ss := session(t, source)
	inRounds(t, ss, func() store.Status {
		_, s := ss.PullKeys([]store.ArrivingKey{wishFor(key).key}, store.PullCursor{}, urgentBytes, func(b []byte) { entry = bytes.Clone(b) })
		return s
	})
	record.Finish(record.PtrOf(entry)) // A store without a log makes no sums.
	return entry
}

// inTier puts bytes into the shared tier as a segment of the source's log.
func inTier(t *testing.T, p *pulls, id record.SegmentID, segment []byte) {
	t.Helper()
	bucket, err := device.OpenBucket(t.Context(), "file://"+t.TempDir(), nil)
	check(t, err)
	t.Cleanup(func() { check(t, bucket.Close()) })
	p.tier = newTier(bucket, 7)
	crc := crc32.Checksum(segment, crc32.MakeTable(crc32.Castagnoli))
	check(t, p.tier.blob.Upload(t.Context(), id, bytes.NewReader(segment), int64(len(segment)), crc))
	p.tier.loaded = time.Now()
	p.tier.known = map[record.SegmentID]device.ManifestSegment{id: {ID: id, Bytes: int64(len(segment)), CRC: crc}}
}

// A lane has word of a cold record, and what came with it is not imported yet.
func TestAKeyIsNotAbsentBecauseTheTierHasAnotherOneWithItsKnownBits(t *testing.T) {
	source := newStore(t)
	ss := session(t, source)
	cold, warm := alike(t)
	putValue(t, ss, cold, 100)
	putValue(t, ss, warm, 100)
	p := askedBy(t, source)
	inTier(t, p, 3, entryOf(t, source, cold))
	check(t, p.urgent.worker.Refer([]store.Indirection{{Known: index.Known(record.PlaceOf(0, []byte(cold))), Segment: 3}}))

	w := wishFor(warm)
	for !w.here {
		check(t, p.fetch([]*wish{w}))
	}
	check(t, p.all(t.Context()))
	check(t, p.settle(t.Context()))
	check(t, p.m.arrival.Finish(t.Context()))
	mine := session(t, p.m.o.Store)
	for _, key := range []string{cold, warm} {
		if st := getKey(t, mine, key); st != store.OK {
			t.Errorf("%s is %s when all is here", key, st)
		}
	}
}

func TestWhatTheTierHasOfARangeThatWasPulledNeedsNoSource(t *testing.T) {
	source := newStore(t)
	putValue(t, session(t, source), "cold", 100)
	p := askedBy(t, filled(t, 10))
	inTier(t, p, 3, entryOf(t, source, "cold"))
	check(t, p.urgent.worker.Refer([]store.Indirection{{Known: index.Known(record.PlaceOf(0, []byte("cold"))), Segment: 3}}))
	check(t, p.all(t.Context()))
	await.True(t, "all ranges count as pulled", p.m.arrival.AllPulled)

	w := wishFor("cold")
	check(t, p.fetch([]*wish{w}))
	if st := getKey(t, session(t, p.m.o.Store), "cold"); !w.here || st != store.OK || p.m.cold.shared.Load() != 1 {
		t.Errorf("the key has come: %v; it is %s, and %d records came from the tier", w.here, st, p.m.cold.shared.Load())
	}
}
