package devicetest

import (
	"testing"

	"github.com/ostrodb/ostro/engine/device"
)

func (s Suite) mappings(t *testing.T) {
	s.test(t, "stores and writes show in each other", func(t *testing.T, d device.Device) {
		f := create(t, d, 1)
		m := mapped(t, f)
		copy(m[5000:], "stored")
		if got := contents(t, f); string(got[5000:5006]) != "stored" {
			t.Errorf("ReadAt sees %q", got[5000:5006])
		}
		_, err := f.WriteAt([]byte("written"), 9000)
		must(t, err)
		if got := string(m[9000:9007]); got != "written" {
			t.Errorf("the mapping shows %q", got)
		}
		other, err := open(t, d, 1).MapRead()
		must(t, err)
		if got := string(other[5000:5006]); got != "stored" {
			t.Errorf("another mapping shows %q", got)
		}
		m[5000] = 'S'
		if other[5000] != 'S' {
			t.Error("a later store does not show in another mapping")
		}
	})
	s.test(t, "an unsynced store survives the process", func(t *testing.T, d device.Device) {
		m := mapped(t, create(t, d, 1))
		m[0], m[segmentBytes-1] = 1, 2
		got := contents(t, open(t, s.Reopen(t, d), 1))
		if got[0] != 1 || got[segmentBytes-1] != 2 {
			t.Fatalf("found %d and %d, want 1 and 2", got[0], got[segmentBytes-1])
		}
	})
	s.test(t, "a store survives unmapping, closing and dropping the cache", func(t *testing.T, d device.Device) {
		f := create(t, d, 1)
		mapped(t, f)[77] = 5
		must(t, f.Sync())
		must(t, f.Unmap())
		must(t, f.Unmap())
		must(t, f.DropCache())
		must(t, f.Close())
		if mapped(t, open(t, d, 1))[77] != 5 {
			t.Fatal("the store is gone")
		}
	})
	s.test(t, "a file has one mapping at a time", func(t *testing.T, d device.Device) {
		f := create(t, d, 1)
		first := mapped(t, f)
		if again := mapped(t, f); &again[0] != &first[0] {
			t.Error("a second Map gives another mapping")
		}
		if _, err := f.MapRead(); err == nil {
			t.Error("a second mapping of another kind was given")
		}
		must(t, f.Unmap())
		read, err := f.MapRead()
		must(t, err)
		if len(read) != segmentBytes {
			t.Errorf("the read-only mapping has %d bytes", len(read))
		}
		if _, err := f.Map(); err == nil {
			t.Error("a writable mapping was given beside a read-only one")
		}
	})
}
