package devicetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

func (s Suite) whole(t *testing.T) {
	s.test(t, "one user at a time", func(t *testing.T, d device.Device) {
		release, err := d.Lock()
		must(t, err)
		if _, err := d.Lock(); !errors.Is(err, device.ErrLocked) {
			t.Fatalf("second lock: %v, want ErrLocked", err)
		}
		release()
		release()
		release, err = d.Lock()
		must(t, err)
		release()
	})
	s.test(t, "usage follows creation and removal", func(t *testing.T, d device.Device) {
		empty, _, err := d.Usage()
		must(t, err)
		create(t, d, 1)
		must(t, d.WriteMeta("config", make([]byte, 10_000)))
		used, free, err := d.Usage()
		must(t, err)
		if used < empty+segmentBytes+10_000 || free <= 0 {
			t.Fatalf("%d bytes used and %d free, after %d used when empty", used, free, empty)
		}
		must(t, d.Remove(1))
		must(t, d.RemoveMeta("config"))
		if used, _, err = d.Usage(); err != nil || used != empty {
			t.Fatalf("%d bytes used after all was removed (%v), want %d", used, err, empty)
		}
	})
	s.test(t, "many use it at once", testMany)
}

// testMany lets every worker live through the life of its own segments and
// metadata beside the others.
func testMany(t *testing.T, d device.Device) {
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for round := range 10 {
				if err := liveOnce(d, worker, round); err != nil {
					t.Errorf("worker %d, round %d: %v", worker, round, err)
					return
				}
			}
		})
	}
	group.Wait()
	wantList(t, d)
}

func liveOnce(d device.Device, worker, round int) error {
	id := record.SegmentID(worker*1000 + round)
	f, err := d.Create(id, segmentBytes)
	if err != nil {
		return err
	}
	defer f.Close()
	m, err := f.Map()
	if err != nil {
		return err
	}
	m[worker] = byte(round)
	name := fmt.Sprintf("config%d", worker)
	for _, act := range []func() error{
		f.Sync,
		func() error { return d.WriteMeta(name, []byte{byte(round)}) },
		func() error { return d.WriteMeta("shared", []byte{byte(round)}) },
		func() error { _, err := d.List(); return err },
		func() error { _, _, err := d.Usage(); return err },
		func() error { _, err := d.ReadMeta(name); return err },
		func() error { return d.Remove(id) },
	} {
		if err := act(); err != nil {
			return err
		}
	}
	return nil
}
