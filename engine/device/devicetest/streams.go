package devicetest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
)

func (s Suite) streams(t *testing.T) {
	s.test(t, "a stream shows when it is committed", func(t *testing.T, d device.Device) {
		must(t, d.WriteMeta("checkpoint", []byte("old")))
		w := stream(t, d, "checkpoint")
		want := writeMuch(t, w)
		wantMeta(t, d, "checkpoint", "old")
		reader, err := d.OpenStream("checkpoint")
		must(t, err)
		must(t, w.Commit())
		must(t, w.Close())
		wantMeta(t, d, "checkpoint", string(want))
		wantStream(t, reader, []byte("old")) // It reads on in what it opened.
		reader, err = s.Reopen(t, d).OpenStream("checkpoint")
		must(t, err)
		wantStream(t, reader, want)
	})
	for name, end := range map[string]func(device.Stream) error{
		"an aborted stream leaves the old version":                 device.Stream.Abort,
		"a stream closed without commit leaves the old version":    device.Stream.Close,
		"a stream that its process left leaves the old version":    func(device.Stream) error { return nil },
		"a stream may be aborted and closed as often as one wants": func(w device.Stream) error { return errors.Join(w.Abort(), w.Abort(), w.Close()) },
	} {
		s.test(t, name, func(t *testing.T, d device.Device) {
			must(t, d.WriteMeta("checkpoint", []byte("old")))
			w := stream(t, d, "checkpoint")
			writeMuch(t, w)
			must(t, end(w))
			wantMeta(t, d, "checkpoint", "old")
			wantMeta(t, s.Reopen(t, d), "checkpoint", "old")
		})
	}
	s.test(t, "an ended stream takes nothing more", func(t *testing.T, d device.Device) {
		w := stream(t, d, "checkpoint")
		must(t, w.Commit())
		must(t, w.Abort())
		wantMeta(t, d, "checkpoint", "")
		if _, err := w.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
			t.Errorf("write: %v", err)
		}
		if err := w.Commit(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("commit: %v", err)
		}
	})
	s.test(t, "of two streams the later commit counts", func(t *testing.T, d device.Device) {
		first, second := stream(t, d, "checkpoint"), stream(t, d, "checkpoint")
		for w, data := range map[device.Stream]string{first: "first", second: "second"} {
			_, err := io.WriteString(w, data)
			must(t, err)
		}
		must(t, second.Commit())
		must(t, first.Commit())
		wantMeta(t, d, "checkpoint", "first")
	})
}

func stream(t *testing.T, d device.Device, name string) device.Stream {
	t.Helper()
	w, err := d.CreateStream(name)
	must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// writeMuch writes in many pieces and returns the whole.
func writeMuch(t *testing.T, w io.Writer) []byte {
	t.Helper()
	var whole []byte
	for i := range 300 {
		piece := bytes.Repeat([]byte{byte(i)}, i*7)
		n, err := w.Write(piece)
		must(t, err)
		if n != len(piece) {
			t.Fatalf("wrote %d of %d bytes", n, len(piece))
		}
		whole = append(whole, piece...)
	}
	return whole
}

func wantStream(t *testing.T, r io.ReadCloser, want []byte) {
	t.Helper()
	got, err := io.ReadAll(r)
	must(t, err)
	must(t, r.Close())
	if !bytes.Equal(got, want) {
		t.Fatalf("the stream gives %d bytes, want %d", len(got), len(want))
	}
}
