package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
)

// A record in the tail of a snapshot must find its tombstone there, too.
func TestWhatWasDeletedWhileASnapshotBeganStaysDeleted(t *testing.T) {
	t.Parallel()
	const pairs = 2000
	dev := device.NewMemory()
	o := store.Options{Device: dev, Durability: store.EverySec, SegmentBytes: 16 << 10, Heads: 4}
	st := open(t, o)
	seed := seedOf(t)
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for n := range 4 {
		ss := session(t, st)
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		wg.Go(func() {
			for !stop.Load() {
				attempt(ss, func() store.Status { return swapPair(ss, rng.IntN(pairs)) })
				pace(t, dev, 1000*o.SegmentBytes, &stop)
			}
		})
	}
	for n := range scale(30) {
		if err := st.Checkpoint(context.Background()); err != nil {
			t.Fatal(err)
		}
		clone := dev.Crash()
		for _, i := range wholePairs(t, o, clone, pairs) {
			t.Fatalf("snapshot %d: both of pair %d are there", n, i)
		}
		clone.Close()
	}
}

// wholePairs opens a store and lists the pairs of which both keys are there.
func wholePairs(t *testing.T, o store.Options, d *device.Memory, pairs int) (whole []int) {
	o.Device = d
	st, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	for i := range pairs {
		if readKey(t, ss, 0, pairKey(i, 0)) != nil && readKey(t, ss, 0, pairKey(i, 1)) != nil {
			whole = append(whole, i)
		}
	}
	return whole
}

func pairKey(i, side int) []byte { return fmt.Appendf(nil, "pair:%d:%d", i, side) }

// swapPair deletes the one of a pair that is there and puts the other.
func swapPair(ss *store.Session, i int) store.Status {
	keys := []store.Key{ss.Key(0, pairKey(i, 0)), ss.Key(0, pairKey(i, 1))}
	if st := ss.Lock(keys); st != store.OK {
		return st
	}
	there, _ := ss.Get(&keys[0])
	gone, come := &keys[1], &keys[0]
	if there.Exists() {
		gone, come = come, gone
	}
	ss.Delete(gone, nil)
	ss.Put(come, store.Write{Value: []byte("here")}, nil)
	return ss.Commit()
}
