package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
)

func TestRecoveryFromASnapshotCountsTheNeighboursOfATruncatedTableOnce(t *testing.T) {
	dev := device.NewMemory()
	o := store.Options{Device: dev, Durability: store.EverySec}
	st := open(t, o)
	ss := session(t, st)
	for n := range 2000 {
		k := ss.Key(n%2, fmt.Appendf(nil, "key:%d", n))
		if s := until(t, ss, func() store.Status { return ss.Put(&k, store.Write{Value: []byte("v")}, nil) }); s != store.OK {
			t.Fatal(s, ss.Err())
		}
	}
	if err := st.Truncate(1); err != nil {
		t.Fatal(err)
	}
	if err := st.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	o.Device = dev.Crash()
	again := open(t, o)
	for db, want := range []int64{1000, 0} {
		if keys, _ := again.Count(db); keys != want {
			t.Errorf("database %d has %d keys, want %d", db, keys, want)
		}
	}
}
