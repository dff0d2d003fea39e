package store

import (
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

func TestASnapshotSpeaksForFilesWhoseCutWasLost(t *testing.T) {
	b := newBench(t, EverySec)
	b.put(0, "key", "deleted soon", true)
	old := b.retire(0)
	b.put(1, "other", "stays", true)
	b.delete(1, "key")
	if err := b.st.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	dev := b.dev.Crash()
	uncut(t, dev, old.ID, b.o.SegmentBytes)
	st := b.open(dev)
	if got := b.read(st, "other"); got != "stays" {
		t.Fatalf("other is %q", got)
	}
	if got := b.read(st, "key"); got != "(absent)" {
		t.Fatalf("a deleted key came back: %q", got)
	}
}

// uncut gives the file of a segment the size that it had before it was cut.
func uncut(t *testing.T, dev *device.Memory, id record.SegmentID, bytes int) {
	t.Helper()
	f, err := dev.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, f.Size())
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := dev.Remove(id); err != nil {
		t.Fatal(err)
	}
	if f, err = dev.Create(id, bytes); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}
