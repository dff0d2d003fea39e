package store

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

// cutter is a device that tells when a file is about to be cut.
type cutter struct {
	*device.Memory
	before func()
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
	f.dev.before()
	return f.File.Cut(bytes)
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
	st, err := Open(Options{Durability: EverySec, SegmentBytes: 64 << 10, Heads: 1, Device: dev, Now: b.now.Load})
	if err != nil {
		t.Fatal(err)
	}
	b.st = st
	defer st.Close()
	b.ss[0] = b.session()
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
