package store_test

import (
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
)

func TestProgressIsToldOfOneSegmentAfterTheOther(t *testing.T) {
	dev := device.NewMemory()
	o := store.Options{Device: dev, Durability: store.EverySec, SegmentBytes: 4 << 10, Heads: 4}
	st, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	putNumbered(t, st, 5000)
	if err := st.CloseUnsaved(); err != nil {
		t.Fatal(err)
	}
	var told []store.Progress // Nobody but the store sees to it that this is no race.
	o.Progress = func(p store.Progress) { told = append(told, p) }
	open(t, o)
	if len(told) < 100 {
		t.Fatalf("%d segments are told of", len(told))
	}
	for n, p := range told {
		if p.Done != int64(n) || p.Total != int64(len(told)-1) {
			t.Fatalf("after %d segments it was told of %d of %d", n, p.Done, p.Total)
		}
	}
}
