package devicetest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

func (s Suite) segments(t *testing.T) {
	s.test(t, "a new segment is zeroed and has its size", func(t *testing.T, d device.Device) {
		f := create(t, d, 7)
		if f.Size() != segmentBytes {
			t.Fatalf("size %d, want %d", f.Size(), segmentBytes)
		}
		if !bytes.Equal(contents(t, f), make([]byte, segmentBytes)) {
			t.Fatal("a new segment is not all zeros")
		}
		if !strings.Contains(f.Path(), "0000000000000007.seg") {
			t.Fatalf("path %q does not name the segment", f.Path())
		}
	})
	s.test(t, "an id is created once", func(t *testing.T, d device.Device) {
		f := create(t, d, 1)
		_, err := f.WriteAt([]byte("first"), 0)
		must(t, err)
		if _, err := d.Create(1, segmentBytes); !errors.Is(err, fs.ErrExist) {
			t.Fatalf("second create: %v, want fs.ErrExist", err)
		}
		if got := contents(t, open(t, d, 1)); string(got[:5]) != "first" {
			t.Fatalf("the refused create changed the segment to %q", got[:5])
		}
	})
	s.test(t, "a segment has a positive size", func(t *testing.T, d device.Device) {
		for _, bytes := range []int{0, -1} {
			if _, err := d.Create(1, bytes); err == nil {
				t.Fatalf("%d bytes were accepted", bytes)
			}
		}
		wantList(t, d)
	})
	s.test(t, "what is missing is fs.ErrNotExist", func(t *testing.T, d device.Device) {
		if _, err := d.Open(5); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open: %v", err)
		}
		if err := d.Remove(5); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("remove: %v", err)
		}
	})
	s.test(t, "the list is sorted and survives", func(t *testing.T, d device.Device) {
		ids := []record.SegmentID{math.MaxUint64, 3, 1 << 40, 1, 255}
		for _, id := range ids {
			create(t, d, id)
		}
		must(t, d.Remove(3))
		wantList(t, d, 1, 255, 1<<40, math.MaxUint64)
		wantList(t, s.Reopen(t, d), 1, 255, 1<<40, math.MaxUint64)
	})
	s.test(t, "a removed segment stays usable to who has it open", func(t *testing.T, d device.Device) {
		f := create(t, d, 1)
		m := mapped(t, f)
		must(t, d.Remove(1))
		m[100] = 7
		if got := contents(t, f); got[100] != 7 {
			t.Fatal("a store after removal was lost")
		}
		must(t, f.Sync())
		wantList(t, d)
		if create(t, d, 1); contents(t, open(t, d, 1))[100] != 0 {
			t.Fatal("a new segment shows bytes of a removed one")
		}
	})
	s.test(t, "reads and writes stay inside", testBounds)
	s.test(t, "a cut segment is shorter, for good", s.testCut)
	s.test(t, "a closed file answers os.ErrClosed", testClosed)
}

func (s Suite) testCut(t *testing.T, d device.Device) {
	const left = 5000
	f := create(t, d, 1)
	m := mapped(t, f)
	for i := range m {
		m[i] = byte(i * 3)
	}
	must(t, f.Sync())
	before, _, err := d.Usage()
	must(t, err)
	for _, bytes := range []int64{-1, segmentBytes + 1} {
		if err := f.Cut(bytes); err == nil || f.Size() != segmentBytes {
			t.Errorf("a cut to %d bytes was accepted", bytes)
		}
	}
	must(t, f.Cut(left))
	after, _, err := d.Usage()
	must(t, err)
	if after >= before {
		t.Errorf("%d bytes are used after the cut, %d were before", after, before)
	}
	if _, err := f.WriteAt([]byte("x"), left); err == nil {
		t.Error("a write behind the cut was accepted")
	}
	for _, d := range []device.Device{d, s.Reopen(t, d)} {
		g := open(t, d, 1)
		if got := contents(t, g); g.Size() != left || !bytes.Equal(got, m[:left]) {
			t.Errorf("%d bytes are left, or other ones; want %d", g.Size(), left)
		}
		if n, err := g.ReadAt(make([]byte, 10), left); n != 0 || err != io.EOF {
			t.Errorf("a read behind the cut: %d, %v", n, err)
		}
		if again := mapped(t, g); !bytes.Equal(again, m[:left]) {
			t.Error("a new mapping shows other bytes")
		}
	}
	must(t, d.Remove(1))
	wantList(t, d)
}

func testBounds(t *testing.T, d device.Device) {
	f := create(t, d, 1)
	if _, err := f.WriteAt([]byte("ab"), segmentBytes-2); err != nil {
		t.Fatalf("write of the last bytes: %v", err)
	}
	for _, off := range []int64{-1, segmentBytes - 1, segmentBytes, math.MaxInt64} {
		if _, err := f.WriteAt([]byte("xy"), off); err == nil {
			t.Errorf("write at %d was accepted", off)
		}
	}
	p := make([]byte, 4)
	if n, err := f.ReadAt(p, segmentBytes-2); n != 2 || err != io.EOF || string(p[:n]) != "ab" {
		t.Errorf("read across the end: %d bytes %q, %v; want 2, io.EOF", n, p[:n], err)
	}
	if f.Size() != segmentBytes || len(contents(t, f)) != segmentBytes {
		t.Error("the segment grew")
	}
}

func testClosed(t *testing.T, d device.Device) {
	f, err := d.Create(1, segmentBytes)
	must(t, err)
	mapped(t, f)
	must(t, f.Close())
	must(t, f.Close())
	_, readErr := f.ReadAt(make([]byte, 1), 0)
	_, writeErr := f.WriteAt(make([]byte, 1), 0)
	_, mapErr := f.Map()
	_, mapReadErr := f.MapRead()
	for act, err := range map[string]error{
		"read": readErr, "write": writeErr, "map": mapErr, "map to read": mapReadErr,
		"sync": f.Sync(), "drop": f.DropCache(), "cut": f.Cut(1),
	} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s after close: %v, want os.ErrClosed", act, err)
		}
	}
	must(t, f.Unmap())
	must(t, open(t, d, 1).Sync()) // The failure above is the handle's, not the segment's.
}

func wantList(t *testing.T, d device.Device, want ...record.SegmentID) {
	t.Helper()
	got, err := d.List()
	must(t, err)
	if !slices.Equal(got, want) {
		t.Fatalf("list is %x, want %x", got, want)
	}
}
