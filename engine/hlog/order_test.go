package hlog

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/epoch"
	"github.com/ostrodb/ostro/engine/record"
)

// loggedLog opens a log without its background work.
func loggedLog(t *testing.T, heads int) (*Log, *device.Memory) {
	t.Helper()
	dev := device.NewMemory()
	l, err := Open(Options{
		Device: dev, SegmentBytes: 1 << 16, Heads: heads, Logged: true, SyncEach: true,
		Epoch: epoch.New(8), Now: func() int64 { return 1 }, Logger: slog.New(slog.DiscardHandler),
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		dev.Close()
	})
	return l, dev
}

func appendTo(t testing.TB, h *Head) record.BatchID {
	h.Lock()
	defer h.Unlock()
	n := record.Size(1, 1, false)
	_, room, err := h.Reserve(n)
	if err != nil {
		t.Error(err)
		return 0
	}
	record.Encode(room, &record.Header{Type: record.TypePut, Version: 1}, []byte("k"), []byte("v"), true)
	h.Keep(n)
	return h.Seal()
}

func TestASegmentIsOnDiskOnceAllBatchesBeforeItsEndAreSynced(t *testing.T) {
	l, _ := loggedLog(t, 2)
	appendTo(t, l.Head(0))
	appendTo(t, l.Head(1))
	s := l.Segments()[0]
	l.Head(0).Rotate()
	if err := l.settleSegment(s); err != nil {
		t.Fatal(err)
	}
	if l.OnDisk(s) {
		t.Error("on disk, while a batch before its end is not")
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if !l.OnDisk(s) {
		t.Error("not on disk after a sync")
	}
}

func TestNumbersHaveNoGapsAndASyncCoversAllUpToItsOwn(t *testing.T) {
	const heads, batches = 4, 5000
	l, dev := loggedLog(t, heads)
	drawn := make([][]record.BatchID, heads)
	var wg sync.WaitGroup
	for n := range heads {
		wg.Go(func() {
			for range batches {
				drawn[n] = append(drawn[n], appendTo(t, l.Head(n)))
			}
		})
	}
	var synced record.BatchID
	for range 20 {
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
		synced = l.Synced()
		if got := onMedium(t, dev); got < synced {
			t.Fatalf("synced to %d, but a loss of power would leave %d", synced, got)
		}
	}
	wg.Wait()
	var all []record.BatchID
	for _, part := range drawn {
		for i, n := range part {
			if i > 0 && n <= part[i-1] {
				t.Fatalf("batch %d after batch %d of the same head", n, part[i-1])
			}
		}
		all = append(all, part...)
	}
	// Closing seals have numbers, too.
	for _, s := range l.Segments() {
		all = append(all, s.batch)
	}
	last := l.Head(0).Batch()
	for n := range heads {
		last = max(last, l.Head(n).Batch())
	}
	if got := record.Prefix(0, all); got != last {
		t.Fatalf("batch %d is missing, the last is %d", got+1, last)
	}
}

// none makes a loss of power take every page that was not synced.
var none = rand.New(zeroes{})

type zeroes struct{}

func (zeroes) Uint64() uint64 { return 0 }

// onMedium tells up to which batch none is missing on what was synced.
func onMedium(t *testing.T, dev *device.Memory) record.BatchID {
	clone := dev.PowerLoss(none)
	defer clone.Close()
	found, err := Find(clone, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	defer CloseAll(found)
	var seen []record.BatchID
	for _, f := range found {
		tail := tail{Found: f}
		if seen, err = tail.look(make([]byte, 1<<16), seen); err != nil {
			t.Fatal(err)
		}
	}
	return record.Prefix(0, seen)
}
