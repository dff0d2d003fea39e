package index

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
)

// The race detector does not see memory outside the Go heap. These tests check
// what the index promises, while everything happens at once.

// worker runs f in a goroutine with a guard of its own, inside.
func worker(t testing.TB, wg *sync.WaitGroup, ix *Index, f func(refresh func())) {
	t.Helper()
	g := enter(t, ix)
	wg.Go(func() {
		defer g.Unregister()
		f(g.Refresh)
	})
}

func TestReadersNeverMissAKeyWhileTheIndexGrows(t *testing.T) {
	n := size(2_000_000)
	ix := open(t, Options{})
	ix.guard.Leave()
	var present atomic.Uint64 // keys below are inserted
	var wg sync.WaitGroup
	worker(t, &wg, ix.Index, func(refresh func()) {
		for key := range n {
			ix.put(placeFor(key), key, addressFor(key, 0))
			present.Store(key + 1)
			if key%256 == 0 {
				refresh()
			}
		}
	})
	for r := range uint64(2) {
		worker(t, &wg, ix.Index, func(refresh func()) {
			random := rand.New(rand.NewPCG(1, r))
			for below := uint64(0); below < n; below = present.Load() {
				if below == 0 {
					runtime.Gosched()
					continue
				}
				for range 256 {
					key := random.Uint64N(below)
					if a, ok := ix.get(placeFor(key), key); !ok || a != addressFor(key, 0) {
						t.Errorf("key %d of %d: address %v, found %v", key, below, a, ok)
						return
					}
				}
				refresh()
			}
		})
	}
	wg.Wait()
	if got := ix.Len(); got != int64(n) {
		t.Errorf("Len is %d, want %d", got, n)
	}
}

// Each worker owns keys and knows what they should be; buckets and sub-tables
// are shared, so every insertion, removal and split of one disturbs the others.
func TestWorkersNeverDisturbEachOthersKeys(t *testing.T) {
	for name, skew := range skews {
		t.Run(name, func(t *testing.T) {
			keys, rounds := size(60_000), size(400_000)
			if skew.crowded {
				keys, rounds = size(3000), size(8000)
			}
			ix := open(t, Options{})
			ix.guard.Leave()
			const workers = 4
			var wg sync.WaitGroup
			for w := range uint64(workers) {
				worker(t, &wg, ix.Index, func(refresh func()) {
					churn(t, ix.Index, skew.place, keys, rounds, w, workers, refresh)
				})
			}
			wg.Wait()
			checkUnique(t, ix.Index)
		})
	}
}

func churn(t *testing.T, ix *Index, place func(uint64) record.Place, keys, rounds, w, workers uint64, refresh func()) {
	random := rand.New(rand.NewPCG(7, w))
	have := map[uint64]record.Address{}
	for i := range rounds {
		key := random.Uint64N(keys/workers)*workers + w
		p := place(key)
		a, ok := ix.get(p, key)
		if want, there := have[key]; ok != there || a != want {
			t.Errorf("key %d: address %v, found %v; want %v, %v", key, a, ok, want, there)
			return
		}
		switch random.Uint32N(8) {
		case 0, 1:
			if ix.remove(p, key) != ok {
				t.Errorf("key %d, present %v: remove did the other thing", key, ok)
			}
			delete(have, key)
		default:
			have[key] = addressFor(key, i)
			if ix.put(p, key, have[key]) == ok {
				t.Errorf("key %d, present %v: put did the other thing", key, ok)
			}
		}
		if i%64 == 0 {
			refresh()
		}
	}
}

// checkUnique dumps the index and finds keys that have two entries.
func checkUnique(t *testing.T, ix *Index) map[uint64]record.Address {
	t.Helper()
	seen := map[uint64]record.Address{}
	err := ix.Dump(func(_ record.Place, a record.Address) error {
		if _, twice := seen[keyAt(a)]; twice {
			t.Errorf("key %d has two entries", keyAt(a))
		}
		seen[keyAt(a)] = a
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := ix.Len(); got != int64(len(seen)) {
		t.Errorf("Len is %d with %d entries", got, len(seen))
	}
	return seen
}

// All workers count all keys up. A lost update, or two entries for one key,
// would lose counts.
func TestNoIncrementIsLostWhenAllInsertTheSameKeys(t *testing.T) {
	const workers, each = 4, 3
	keys := size(100_000)
	ix := open(t, Options{})
	ix.guard.Leave()
	var wg sync.WaitGroup
	var inserted atomic.Int64
	for w := range uint64(workers) {
		worker(t, &wg, ix.Index, func(refresh func()) {
			for i := range keys * each {
				key := (i + w*100) % keys // close together, so that they collide
				if ix.increment(key) {
					inserted.Add(1)
				}
				if i%64 == 0 {
					refresh()
				}
			}
		})
	}
	wg.Wait()
	if got := inserted.Load(); got != int64(keys) {
		t.Errorf("%d insertions of %d keys", got, keys)
	}
	for key, a := range checkUnique(t, ix.Index) {
		if got := versionAt(a); got != workers*each-1 {
			t.Fatalf("key %d counted to %d, want %d", key, got, workers*each-1)
		}
	}
}

// increment counts a key's version up from 0 and tells whether it was new.
func (ix *Index) increment(key uint64) (inserted bool) {
	var pr Probe
	for {
		if ix.find(&pr, placeFor(key), key) {
			if ix.Update(&pr, addressFor(key, versionAt(pr.Address())+1)) {
				return false
			}
		} else if ix.Insert(&pr, addressFor(key, 0)) == Inserted {
			return true
		}
	}
}

// A worker locates a bucket, writes, and then searches with the early probe, as
// a pipelined batch may. Whatever splits come between, it finds its own write.
func TestABatchSeesItsOwnWritesWhileTheIndexGrows(t *testing.T) {
	ix := open(t, Options{})
	ix.guard.Leave()
	var growth, batches sync.WaitGroup
	var done atomic.Bool
	for w := range uint64(2) {
		worker(t, &batches, ix.Index, func(refresh func()) {
			random := rand.New(rand.NewPCG(11, w))
			var early [16]Probe
			for version := uint64(0); !done.Load(); version++ {
				for i := range early {
					key := (random.Uint64N(100)*uint64(len(early))+uint64(i))*2 + w
					ix.SeekPrefetch(placeFor(key), &early[i])
					ix.put(placeFor(key), key, addressFor(key, version))
					if i%4 == 0 {
						runtime.Gosched()
					}
					pr := &early[i]
					ix.Start(pr)
					for pr.Next() && keyAt(pr.Address()) != key {
					}
					if pr.Address() != addressFor(key, version) {
						t.Errorf("key %d: address %v, want %v", key, pr.Address(), addressFor(key, version))
						return
					}
				}
				refresh()
			}
		})
	}
	worker(t, &growth, ix.Index, func(refresh func()) {
		for key := uint64(10_000); key < size(400_000); key++ {
			ix.put(placeFor(key), key, addressFor(key, 0))
			refresh()
		}
	})
	growth.Wait()
	done.Store(true)
	batches.Wait()
}

// Transactions move one unit from a key to another, under locks that travel
// with the splits which a writer beside them causes. The sum stays.
func TestLocksHoldAcrossSplits(t *testing.T) {
	const workers, accounts, start = 3, 2000, 1000
	ix := open(t, Options{})
	for key := range uint64(accounts) {
		ix.put(placeFor(key), key, addressFor(key, start))
	}
	ix.guard.Leave()
	var transfers, growth sync.WaitGroup
	var done atomic.Bool
	for w := range uint64(workers) {
		worker(t, &transfers, ix.Index, func(refresh func()) {
			random := rand.New(rand.NewPCG(3, w))
			for i := 0; !done.Load(); i++ {
				ix.transfer(t, random.Uint64N(accounts), random.Uint64N(accounts), i)
				refresh()
			}
		})
	}
	worker(t, &growth, ix.Index, func(refresh func()) {
		for key := range size(400_000) {
			ix.put(placeFor(accounts+key), accounts+key, addressFor(accounts+key, 0))
			refresh()
		}
	})
	growth.Wait()
	done.Store(true)
	transfers.Wait()
	sum := uint64(0)
	for key, a := range checkUnique(t, ix.Index) {
		if key < accounts {
			sum += versionAt(a)
		}
	}
	if sum != accounts*start {
		t.Errorf("sum is %d, want %d", sum, accounts*start)
	}
	if ix.Metrics().Splits == 0 {
		t.Error("nothing was split")
	}
}

// transfer moves one unit and, for a third key that is absent, holds a
// placeholder meanwhile, as a transaction would that may create it.
func (ix *Index) transfer(t *testing.T, from, to uint64, i int) {
	if from == to {
		return
	}
	low, high := min(from, to), max(from, to)
	a, b := ix.lock(low), ix.lock(high)
	absent := 1<<32 + low
	c := ix.lock(absent)
	if c.Address() != 0 {
		t.Errorf("key %d should be absent", absent)
	}
	source, target := &a, &b
	if low != from {
		source, target = target, source
	}
	units := versionAt(source.Address())
	if units > 0 {
		runtime.Gosched()
		ix.UpdateLocked(source, addressFor(from, units-1), i%2 == 0)
		if i%2 == 0 {
			ix.Unlock(source)
		}
		ix.UpdateLocked(target, addressFor(to, versionAt(target.Address())+1), false)
	} else {
		ix.Unlock(source)
		ix.Unlock(target)
	}
	if i%3 == 0 { // create it and take it away again
		ix.UpdateLocked(&c, addressFor(absent, 0), true)
		ix.RemoveLocked(&c)
	} else {
		ix.Unlock(&c)
	}
}

// lock returns a probe at the locked entry of a key, a placeholder if absent.
func (ix *Index) lock(key uint64) (pr Probe) {
	for round := 0; ; round++ {
		if ix.tryLock(&pr, key) {
			return pr
		}
		relax(round)
	}
}

func (ix *Index) tryLock(pr *Probe, key uint64) bool {
	ix.Seek(placeFor(key), pr)
	for pr.Next() {
		if pr.Address() == 0 {
			return false // maybe ours
		}
		if keyAt(pr.Address()) == key {
			return ix.Lock(pr)
		}
	}
	return ix.InsertLocked(pr, 0) == Inserted
}
