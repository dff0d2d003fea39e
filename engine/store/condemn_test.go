package store

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

// cutter is a device that tells when a file is about to be cut, and asks whether
// one may be removed.
type cutter struct {
	*device.Memory
	before func()
	remove func(record.SegmentID) error
}

type cutterFile struct {
	device.File
	dev *cutter
}

func (c *cutter) Create(id record.SegmentID, bytes int) (device.File, error) {
	f, err := c.Memory.Create(id, bytes)
	return &cutterFile{f, c}, err
}

func (f *cutterFile) Cut(bytes int64) error {
	if f.dev.before != nil {
		f.dev.before()
	}
	return f.File.Cut(bytes)
}

func (c *cutter) Remove(id record.SegmentID) error {
	if c.remove != nil {
		if err := c.remove(id); err != nil {
			return err
		}
	}
	return c.Memory.Remove(id)
}

// openOn opens the bench's store, with one session.
func (b *bench) openOn(dev device.Device) {
	b.t.Helper()
	st, err := Open(Options{Durability: EverySec, SegmentBytes: 64 << 10, Heads: 1, Device: dev, Now: b.now.Load})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = st.Close() })
	b.st = st
	b.ss[0] = b.session()
}

func TestACondemnedSegmentStaysUntilItsSyncIsOver(t *testing.T) {
	b := &bench{t: t}
	b.now.Store(1000)
	var met atomic.Int64
	dev := &cutter{Memory: device.NewMemory(), before: func() {
		if !b.st.cleaning.TryLock() {
			return
		}
		met.Add(int64(len(b.st.condemned)))
		err := b.st.bury(false) // The cleaner comes by.
		b.st.cleaning.Unlock()
		if err != nil {
			t.Error(err)
		}
		b.passGuards()
	}}
	b.openOn(dev)
	st := b.st
	for n := 0; met.Load() == 0; n++ { // The sync of each second may come too early.
		b.put(0, "key", fmt.Sprint(n), true)
		if err := st.condemn(b.retire(0)); err != nil {
			t.Fatal(err)
		}
		if err := st.log.Sync(); err != nil {
			t.Fatalf("a segment was dropped before it was cut: %v", err)
		}
		if got := b.read(st, "key"); got != fmt.Sprint(n) {
			t.Fatalf("key is %q, want %d", got, n)
		}
	}
}

// passGuards lets all happen that waits for guards.
func (b *bench) passGuards() {
	for b.st.epoch.Drain() > 0 || b.st.freeing() {
		yield(9)
	}
}

func TestASegmentThatCannotBeDroppedKeepsNoOther(t *testing.T) {
	b := &bench{t: t}
	b.now.Store(1000)
	broken := errors.New("the file is immutable")
	var stuck atomic.Uint64
	dev := &cutter{Memory: device.NewMemory(), remove: func(id record.SegmentID) error {
		if uint64(id) == stuck.Load() {
			return broken
		}
		return nil
	}}
	b.openOn(dev)
	for n := range 16 {
		b.put(0, fmt.Sprint(n), "value", true)
		seg := b.retire(0)
		stuck.CompareAndSwap(0, uint64(seg.ID))
		if err := b.st.condemn(seg); err != nil {
			t.Fatalf("segment %d counts as not cleaned because of another: %v", seg.ID, err)
		}
		if err := b.st.log.Sync(); err != nil { // From here on it may go.
			t.Fatal(err)
		}
	}
	b.st.cleaning.Lock()
	defer b.st.cleaning.Unlock()
	if err := b.st.bury(true); !errors.Is(err, broken) || len(b.st.condemned) != 1 {
		t.Fatalf("%v, and %d segments wait", err, len(b.st.condemned))
	}
	if n := b.st.Metrics().CleanedSegments; n != 15 {
		t.Fatalf("%d of 15 segments count as cleaned", n)
	}
}

// On a full disk the maintenance comes by thousands of times a second.
func TestASegmentThatCannotBeDroppedIsLeftAloneForAWhile(t *testing.T) {
	b := &bench{t: t}
	b.now.Store(10_000)
	var tries, full atomic.Int64
	full.Store(1)
	b.openOn(&cutter{Memory: device.NewMemory(), remove: func(record.SegmentID) error {
		tries.Add(1)
		if full.Load() == 1 {
			return errors.New("no space left on device")
		}
		return nil
	}})
	b.put(0, "key", "value", true)
	if err := b.st.condemn(b.retire(0)); err != nil {
		t.Fatal(err)
	}
	if err := b.st.log.Sync(); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		b.st.buryCondemned()
	}
	if n := tries.Load(); n != 1 {
		t.Fatalf("it was tried %d times in a moment", n)
	}
	full.Store(0)
	b.now.Add(buryRest)
	b.st.buryCondemned()
	b.st.cleaning.Lock()
	defer b.st.cleaning.Unlock()
	if len(b.st.condemned) != 0 || tries.Load() != 2 {
		t.Fatalf("%d segments wait after %d tries", len(b.st.condemned), tries.Load())
	}
}

func TestAColdSegmentThatCannotBeDroppedKeepsNoOtherInMemory(t *testing.T) {
	b := &bench{t: t}
	b.now.Store(1000)
	var stuck atomic.Uint64
	b.openOn(&cutter{Memory: device.NewMemory(), remove: func(id record.SegmentID) error {
		if uint64(id) == stuck.Load() {
			return errors.New("the file is immutable")
		}
		return nil
	}})
	b.put(0, "cold", "value", true)
	cold := b.retire(0)
	b.put(0, "warm", "value", true)
	warm := b.retire(0)
	stuck.Store(uint64(cold.ID))
	if err := b.st.cool(cold); err != nil || !b.st.evict(cold) {
		t.Fatalf("a segment does not leave memory: %v", err)
	}
	if err := b.st.condemn(cold, warm); err != nil {
		t.Fatal(err)
	}
	if b.st.log.InMemory(warm) {
		t.Fatal("a cleaned segment stays in memory")
	}
	b.st.cleaning.Lock()
	for s, c := range b.st.condemned {
		if c.cold != nil {
			t.Errorf("segment %d is in memory while it waits to be dropped", s.ID)
		}
	}
	b.st.cleaning.Unlock()
	for _, key := range []string{"cold", "warm"} {
		if got := b.read(b.st, key); got != "value" {
			t.Fatalf("%s is %q", key, got)
		}
	}
}

func TestADeadSegmentThatCannotBeReadKeepsNoOther(t *testing.T) {
	b := newBench(t, EverySec)
	b.put(0, "other", "keeps it until it is doomed", true)
	b.put(0, "key", "first", true)
	cold := b.retire(0)
	b.put(0, "key", "second", true)
	warm := b.retire(0)
	if err := b.st.cool(cold); err != nil || !b.st.evict(cold) {
		t.Fatalf("a segment does not leave memory: %v", err)
	}
	b.put(0, "key", "third", true)
	for nth := range 1000 {
		b.dev.Fail(device.OpRead, nth+1, errors.New("a bad sector"))
	}
	b.st.log.Doom(cold)
	b.st.dropDead(t.Context())
	if b.st.log.InMemory(warm) {
		t.Fatal("a dead segment stays in memory because of another")
	}
	if got := b.read(b.st, "key"); got != "third" {
		t.Fatalf("key is %q", got)
	}
}
