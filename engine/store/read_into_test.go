package store_test

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
)

// A record that is removed while it is copied was not read: the memory for it is as it was.
func TestWhatIsNotThereLeavesTheMemoryForItAsItWas(t *testing.T) {
	st := open(t, store.Options{Durability: store.None})
	ss := session(t, st)
	key, value := []byte("key"), bytes.Repeat([]byte("v"), 256)
	var stop atomic.Bool
	var changing sync.WaitGroup
	defer changing.Wait()
	defer stop.Store(true)
	other := session(t, st)
	changing.Go(func() {
		for !stop.Load() {
			other.Begin()
			k := other.Key(0, key)
			other.Put(&k, store.Write{Value: value}, nil)
			other.Delete(&k, nil)
			other.End()
		}
	})
	var v store.View
	var sight store.Sight
	untouched := make([]byte, len(value))
	for i := range scale(300_000) {
		into := make([]byte, len(value))
		ss.Begin()
		k := ss.Key(0, key)
		n, status := ss.ReadInto(&k, &v, &sight, into)
		ss.End()
		switch {
		case status == store.OK && n == len(value) && bytes.Equal(into, value):
		case status == store.NotFound && bytes.Equal(into, untouched):
		default:
			t.Fatalf("read %d: %v, %d bytes: %q", i, status, n, into)
		}
	}
}
