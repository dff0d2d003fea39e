package store_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
)

func TestASnapshotEndsWithALifeThatDoesNotUseIt(t *testing.T) {
	dev := device.NewMemory()
	o := store.Options{Device: dev, Durability: store.EverySec}
	st := open(t, o)
	if err := st.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	const name = "index.snapshot"
	if _, err := dev.ReadMeta(name); err != nil {
		t.Fatal(err)
	}
	clone := dev.Crash()
	o.Device, o.Durability = clone, store.Checkpoint
	open(t, o)
	if _, err := clone.ReadMeta(name); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the snapshot of a log that went on without it is still there: %v", err)
	}
}
