package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

func TestColdSegmentsAreReadFromTheBlobTier(t *testing.T) {
	t.Parallel()
	const keys = 20000
	blobs := "file://" + t.TempDir()
	dev := device.NewMemory()
	o := store.Options{
		Device: dev, Durability: store.EverySec, SegmentBytes: 64 << 10, MemoryBytes: 4 << 20,
		BlobURL: blobs, DiskBytes: 256 << 10,
	}
	st, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ss := session(t, st)
	tiered(t, st, ss, keys)
	readTiered(t, ss, keys)
	ss.Close()
	o.Device = dev.Crash()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	without := o
	without.BlobURL, without.DiskBytes, without.Device = "", 0, o.Device.(*device.Memory).Crash()
	if _, err := store.Open(without); err == nil || !strings.Contains(err.Error(), "set the blob URL") {
		t.Fatalf("without the tier that has most of it the store opens: %v", err)
	}
	st = open(t, o)
	readTiered(t, session(t, st), keys)
}

func tieredValue(n int) string { return fmt.Sprintf("%0150d", n) }

// tiered writes so many keys that some are in the blob tier only.
func tiered(t *testing.T, st *store.Store, ss *store.Session, keys int) {
	t.Helper()
	for n := range keys {
		k := key(ss, n)
		if s := until(t, ss, func() store.Status { return ss.Put(&k, store.Write{Value: []byte(tieredValue(n))}, nil) }); s != store.OK {
			t.Fatal(s, ss.Err())
		}
	}
	await.True(t, "cold segments are in the blob tier only", func() bool {
		m := st.Metrics()
		return m.SegmentsOnBlob > 0 && m.SegmentsOnDisk < m.SegmentsOnBlob
	})
}

// readTiered reads the first of them.
func readTiered(t *testing.T, ss *store.Session, keys int) {
	t.Helper()
	for n := range keys {
		k := key(ss, n)
		s := until(t, ss, func() store.Status {
			v, s := ss.Get(&k)
			if s == store.OK && string(v.Value) != tieredValue(n) {
				t.Fatalf("key %d: %q", n, v.Value)
			}
			return s
		})
		if s != store.OK {
			t.Fatalf("key %d: %v %v", n, s, ss.Err())
		}
	}
}
