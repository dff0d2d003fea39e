package device_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

const page = 4096

func createIn(t *testing.T, d device.Device, id record.SegmentID, bytes int) (device.File, []byte) {
	t.Helper()
	f, err := d.Create(id, bytes)
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	m, err := f.Map()
	must(t, err)
	return f, m
}

func contents(t *testing.T, d device.Device, id record.SegmentID) []byte {
	t.Helper()
	f, err := d.Open(id)
	must(t, err)
	defer f.Close()
	p := make([]byte, f.Size())
	_, err = f.ReadAt(p, 0)
	must(t, err)
	return p
}

func TestCrashKeepsAllAndIsItsOwnDevice(t *testing.T) {
	m := newMemory(t)
	f, before := createIn(t, m, 1, 3*page+100)
	copy(before, "synced")
	must(t, f.Sync())
	copy(before[3*page:], "not synced")
	must(t, m.WriteMeta("config", []byte("old")))
	_, err := m.Lock()
	must(t, err)

	c := closing(t, m.Crash())
	if got := contents(t, c, 1); !bytes.Equal(got, before) {
		t.Error("the clone has other bytes")
	}
	_, err = c.Lock()
	must(t, err)
	_, after := func() (device.File, []byte) {
		f, err := c.Open(1)
		must(t, err)
		t.Cleanup(func() { must(t, f.Close()) })
		m, err := f.Map()
		must(t, err)
		return f, m
	}()
	after[0] = 'X'
	before[1] = 'Y'
	must(t, c.WriteMeta("config", []byte("new")))
	if before[0] != 's' || after[1] != 'y' {
		t.Error("a store into one shows in the other")
	}
	if got, err := m.ReadMeta("config"); err != nil || string(got) != "old" {
		t.Errorf("the original's metadata became %q, %v", got, err)
	}
	if got := contents(t, closing(t, c.PowerLoss(rand.New(rand.NewPCG(1, 1)))), 1); string(got[1:6]) != "ynced" {
		t.Errorf("the clone forgot what was synced before: %q", got[:6])
	}
}

func TestPowerLossKeepsWhatWasSyncedAndAnySubsetOfTheRest(t *testing.T) {
	const pages = 8
	m := newMemory(t)
	f, b := createIn(t, m, 1, pages*page)
	for n := range pages {
		copy(b[n*page:], "synced")
	}
	must(t, f.Sync())
	dirty := []int{1, 2, 5, 7}
	for _, n := range dirty {
		copy(b[n*page:], "stored")
		copy(b[(n+1)*page-6:], "stored")
	}
	_, never := createIn(t, m, 2, page)
	never[0] = 1

	seen := map[int]bool{}
	for seed := range uint64(400) {
		c := m.PowerLoss(rand.New(rand.NewPCG(seed, 0)))
		got := contents(t, c, 1)
		subset := 0
		for n := range pages {
			now := got[n*page : (n+1)*page]
			switch {
			case bytes.Equal(now, b[n*page:(n+1)*page]) && string(now[:6]) == "stored":
				subset |= 1 << n
			case string(now[:6]) != "synced" || !bytes.Equal(now[6:], make([]byte, page-6)):
				t.Fatalf("seed %d: page %d is neither as synced nor as stored", seed, n)
			}
		}
		seen[subset] = true
		again := m.PowerLoss(rand.New(rand.NewPCG(seed, 0)))
		if !bytes.Equal(got, contents(t, again, 1)) {
			t.Fatalf("seed %d gives two outcomes", seed)
		}
		c.Close()
		again.Close()
	}
	if len(seen) != 1<<len(dirty) {
		t.Fatalf("%d of %d outcomes were seen", len(seen), 1<<len(dirty))
	}
}

func TestTheNthCallFails(t *testing.T) {
	boom := errors.New("boom")
	m := newMemory(t)
	m.Fail(device.OpCreate, 2, boom)
	m.Fail(device.OpSync, 3, boom)
	f, _ := createIn(t, m, 1, page)
	if _, err := m.Create(2, page); !errors.Is(err, boom) {
		t.Errorf("second create: %v", err)
	}
	createIn(t, m, 2, page)
	must(t, f.Sync())
	must(t, m.WriteMeta("config", []byte("old")))
	if err := m.WriteMeta("config", []byte("new")); !errors.Is(err, boom) {
		t.Errorf("third sync: %v", err)
	}
	if got, err := m.ReadMeta("config"); err != nil || string(got) != "old" {
		t.Errorf("after a failed replacement: %q, %v", got, err)
	}
	if got := m.Calls(device.OpSync); got != 3 {
		t.Errorf("%d syncs were counted, want 3", got)
	}
	must(t, f.Sync())
}

func TestAFailedSyncInMemoryHoldsForGood(t *testing.T) {
	m := newMemory(t)
	f, b := createIn(t, m, 1, page)
	b[0] = 1
	m.Fail(device.OpSync, 1, unix.EIO)
	for range 3 {
		if err := f.Sync(); !errors.Is(err, unix.EIO) {
			t.Fatalf("got %v, want EIO", err)
		}
	}
	other, err := m.Open(1)
	must(t, err)
	defer other.Close()
	if err := other.Sync(); !errors.Is(err, unix.EIO) {
		t.Errorf("another handle: %v, want EIO", err)
	}
	g, _ := createIn(t, m, 2, page)
	must(t, g.Sync())
}

func TestAFailedWriteLeavesAPartOfItself(t *testing.T) {
	m := newMemory(t)
	f, b := createIn(t, m, 1, page)
	m.Fail(device.OpWrite, 1, unix.EIO)
	if n, err := f.WriteAt([]byte("abcdef"), 10); n != 3 || !errors.Is(err, unix.EIO) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	if got := string(b[10:16]); got != "abc\x00\x00\x00" {
		t.Fatalf("found %q", got)
	}
}

func TestAFullMemoryDeviceRefusesAndRecovers(t *testing.T) {
	m := newMemory(t)
	m.SetCapacity(3 * page)
	createIn(t, m, 1, 2*page)
	if _, err := m.Create(2, 2*page); !errors.Is(err, device.ErrFull) {
		t.Errorf("create: %v", err)
	}
	if err := m.WriteMeta("config", make([]byte, page+1)); !errors.Is(err, device.ErrFull) {
		t.Errorf("metadata: %v", err)
	}
	if used, free, _ := m.Usage(); used != 2*page || free != page {
		t.Errorf("%d used, %d free", used, free)
	}
	must(t, m.Remove(1))
	createIn(t, m, 2, 2*page)
}

func TestMemoryGivesItsDescriptorsBack(t *testing.T) {
	before := openFiles(t)
	for range 20 {
		m := device.NewMemory()
		f, err := m.Create(1, page)
		must(t, err)
		_, err = f.Map()
		must(t, err)
		c := m.Crash()
		m.Close()
		must(t, f.Sync()) // Still usable until closed.
		must(t, f.Close())
		must(t, c.Remove(1))
		c.Close()
	}
	if got := openFiles(t); got != before {
		t.Fatalf("%d descriptors are open, %d were before", got, before)
	}
}
