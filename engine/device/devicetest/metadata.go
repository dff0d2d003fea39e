package devicetest

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
)

func (s Suite) metadata(t *testing.T) {
	s.test(t, "metadata is replaced whole and survives", func(t *testing.T, d device.Device) {
		for _, data := range []string{"a long first version", "second", "", "fourth"} {
			must(t, d.WriteMeta("config", []byte(data)))
			wantMeta(t, d, "config", data)
		}
		wantMeta(t, s.Reopen(t, d), "config", "fourth")
	})
	s.test(t, "callers keep their slices to themselves", func(t *testing.T, d device.Device) {
		data := []byte("mine")
		must(t, d.WriteMeta("config", data))
		data[0] = 'X'
		got, err := d.ReadMeta("config")
		must(t, err)
		got[1] = 'Y'
		wantMeta(t, d, "config", "mine")
	})
	s.test(t, "metadata that is missing is fs.ErrNotExist", func(t *testing.T, d device.Device) {
		must(t, d.WriteMeta("gone", []byte("x")))
		must(t, d.RemoveMeta("gone"))
		_, readErr := d.ReadMeta("gone")
		_, openErr := d.OpenStream("gone")
		for act, err := range map[string]error{"read": readErr, "open": openErr, "remove": d.RemoveMeta("gone")} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", act, err)
			}
		}
	})
	s.test(t, "metadata is no segment, and no name leads elsewhere", func(t *testing.T, d device.Device) {
		must(t, d.WriteMeta("0000000000000001.seg", []byte("x")))
		wantList(t, d)
		for _, name := range []string{"", ".", "..", "a/b", "../a", "segments", "LOCK", "a.tmp", "a*b", "a\x00b", strings.Repeat("n", 129)} {
			if err := d.WriteMeta(name, nil); err == nil {
				t.Errorf("name %q was accepted for writing", name)
			}
			if _, err := d.ReadMeta(name); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("name %q was accepted for reading: %v", name, err)
			}
			if err := d.RemoveMeta(name); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("name %q was accepted for removal: %v", name, err)
			}
		}
	})
	s.test(t, "a reader sees an old or a new version, nothing between", testReaders)
}

// testReaders replaces metadata by versions of one repeated byte while others read.
func testReaders(t *testing.T, d device.Device) {
	version := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 3000+n*100) }
	must(t, d.WriteMeta("config", version(0)))
	done := make(chan struct{})
	readers := make(chan error, 2)
	for range cap(readers) {
		go func() { readers <- readUntil(d, done, version) }()
	}
	for n := 1; n < 50; n++ {
		must(t, d.WriteMeta("config", version(n)))
	}
	close(done)
	for range cap(readers) {
		must(t, <-readers)
	}
}

func readUntil(d device.Device, done <-chan struct{}, version func(int) []byte) error {
	for {
		got, err := d.ReadMeta("config")
		if err != nil {
			return err
		}
		if len(got) == 0 || !bytes.Equal(got, version(int(got[0]))) {
			return errors.New("a reader saw a version that was never written")
		}
		select {
		case <-done:
			return nil
		default:
		}
	}
}

func wantMeta(t *testing.T, d device.Device, name, want string) {
	t.Helper()
	got, err := d.ReadMeta(name)
	must(t, err)
	if string(got) != want {
		t.Fatalf("%s holds %q, want %q", name, got, want)
	}
}
