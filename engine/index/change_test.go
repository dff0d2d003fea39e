package index

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/epoch"
	"github.com/ostrodb/ostro/engine/record"
)

func TestAChangeFailsIfAnotherCameFirst(t *testing.T) {
	const key = 1
	p, a := placeFor(key), func(v uint64) record.Address { return addressFor(key, v) }
	for _, c := range []struct {
		name   string
		change func(ix *Index, late *Probe) bool
	}{
		{"update", func(ix *Index, late *Probe) bool { return ix.Update(late, a(3)) }},
		{"remove", func(ix *Index, late *Probe) bool { return ix.Remove(late) }},
		{"lock", func(ix *Index, late *Probe) bool { return ix.Lock(late) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			ix := open(t, Options{})
			ix.put(p, key, a(0))
			var late Probe
			ix.find(&late, p, key)
			ix.put(p, key, a(1))
			if c.change(ix.Index, &late) {
				t.Fatal("it overwrote a change that it had not seen")
			}
			ix.find(&late, p, key)
			ix.remove(p, key)
			if c.change(ix.Index, &late) {
				t.Fatal("it changed an entry that is gone")
			}
			ix.put(p, key, a(1))
			if ix.find(&late, p, key); !c.change(ix.Index, &late) {
				t.Fatal("it failed though nobody came between")
			}
		})
	}
}

func TestInsertFailsIfTheBucketGotAnotherEntrySinceTheProbe(t *testing.T) {
	ix := open(t, Options{})
	p := placeFor(1)
	neighbour := p ^ 1<<40 // same bucket, another tag
	var first, second, third Probe
	ix.Seek(p, &first)
	ix.Seek(p, &second)
	ix.Seek(neighbour, &third)
	if got := ix.Insert(&first, addressFor(1, 0)); got != Inserted {
		t.Fatalf("first insertion: %v", got)
	}
	if got := ix.Insert(&second, addressFor(1, 1)); got != Retry {
		t.Fatalf("second insertion of the same key: %v", got)
	}
	if got := ix.Insert(&third, addressFor(2, 0)); got != Retry {
		t.Fatalf("insertion into a bucket that changed: %v", got)
	}
	ix.Seek(neighbour, &third)
	if ix.remove(p, 1); ix.Insert(&third, addressFor(2, 0)) != Inserted {
		t.Fatal("a removal must not disturb an insertion")
	}
}

func TestPlaceholderKeepsAKeyFromBeingInsertedAndLeavesNoTrace(t *testing.T) {
	ix := open(t, Options{})
	for _, p := range []record.Place{placeFor(1), 0, 5 << 10} { // with tag 0, too
		var holder, other Probe
		ix.Seek(p, &holder)
		ix.Seek(p, &other)
		if ix.InsertLocked(&holder, 0) != Inserted || !holder.Locked() || holder.Address() != 0 {
			t.Fatalf("place %#x: no placeholder", p)
		}
		if ix.Insert(&other, addressFor(1, 0)) != Retry {
			t.Fatalf("place %#x: inserted past a placeholder", p)
		}
		if ix.Seek(p, &other); !other.Next() || !other.Locked() || other.Address() != 0 {
			t.Fatalf("place %#x: others do not see the placeholder", p)
		}
		ix.Walk(0, ^record.Place(0), func(record.Place, *Probe) bool {
			t.Fatal("a walk met the placeholder")
			return false
		})
		if ix.Unlock(&holder); ix.Len() != 0 {
			t.Fatalf("place %#x: placeholder stayed", p)
		}
	}
}

// A pipelined batch locates all buckets first. If a write of the same batch
// has the sub-table split, a later read of that batch must still see the write.
func TestStartFindsWhatWasWrittenAfterSeekPrefetch(t *testing.T) {
	ix := open(t, Options{})
	const n = 4000
	ix.fill(n, placeFor)
	early := make([]Probe, n)
	for key := range uint64(n) {
		ix.SeekPrefetch(placeFor(key), &early[key])
	}
	for key := uint64(n); ix.Metrics().Splits < 3; key++ {
		ix.put(placeFor(key), key, addressFor(key, 0))
	}
	for key := range uint64(n) {
		ix.put(placeFor(key), key, addressFor(key, 1))
	}
	for key := range uint64(n) {
		pr := &early[key]
		ix.Start(pr)
		for pr.Next() && keyAt(pr.Address()) != key {
		}
		if pr.Address() != addressFor(key, 1) {
			t.Fatalf("key %d: address %v is from before the split", key, pr.Address())
		}
	}
}

func TestAProbeFromBeforeASplitChangesNothing(t *testing.T) {
	ix := open(t, Options{})
	const n = 3000
	ix.fill(n, placeFor)
	var update, remove, lock, insert Probe
	ix.find(&update, placeFor(1), 1)
	ix.find(&remove, placeFor(2), 2)
	ix.find(&lock, placeFor(3), 3)
	ix.find(&insert, placeFor(n), n)
	for key := uint64(n + 1); ix.Metrics().Splits == 0; key++ {
		ix.put(placeFor(key), key, addressFor(key, 0))
	}
	if ix.Update(&update, addressFor(1, 1)) || ix.Remove(&remove) || ix.Lock(&lock) {
		t.Fatal("a frozen word was changed")
	}
	if ix.Insert(&insert, addressFor(n, 0)) != Retry {
		t.Fatal("inserted into a sub-table that was replaced")
	}
	for key := range uint64(4) {
		if a, ok := ix.get(placeFor(key), key); !ok || a != addressFor(key, 0) {
			t.Fatalf("key %d: address %v, found %v", key, a, ok)
		}
	}
}

func TestChurnRebuildsInsteadOfGrowing(t *testing.T) {
	ix := open(t, Options{})
	const population = 3000
	for key := range size(1_000_000) {
		ix.put(placeFor(key), key, addressFor(key, 0))
		if key >= population {
			ix.remove(placeFor(key-population), key-population)
		}
		ix.guard.Refresh()
	}
	m := ix.Metrics()
	if m.Rebuilds == 0 || m.Splits > 1 || m.Entries != population {
		t.Fatalf("after churn: %+v", m)
	}
}

func TestReplacedSubTablesAreUsedAgain(t *testing.T) {
	ix := open(t, Options{})
	const n = 300_000
	ix.fill(n, placeFor)
	// An entry takes 16 bytes in a sub-table that is about to split, and twice
	// that in one that has just been. One chunk is for directories.
	if perEntry := float64(ix.Bytes()-chunkBytes) / n; perEntry > 40 {
		t.Fatalf("%.1f bytes per entry", perEntry)
	}
}

func TestRoomForTheStatedEntriesIsThereFromTheStart(t *testing.T) {
	for _, n := range []uint64{1, 4000, 4001, 100_000, 300_000} {
		ix := open(t, Options{Entries: int(n)})
		before := ix.Bytes()
		ix.fill(n, placeFor)
		if m := ix.Metrics(); m.Splits != 0 || m.Bytes != before {
			t.Fatalf("%d entries: %+v, %d bytes at first", n, m, before)
		}
	}
}

func TestWithoutMemoryInsertionsFailAndTheRestWorks(t *testing.T) {
	ix := open(t, Options{})
	ix.arena.limit = ix.Bytes() + chunkBytes
	var pr Probe
	n := uint64(0)
	for ; ; n++ {
		result := Retry
		for result == Retry {
			ix.find(&pr, placeFor(n), n)
			result = ix.Insert(&pr, addressFor(n, 0))
		}
		if result == Full {
			break
		}
		ix.guard.Refresh()
	}
	for key := range n {
		if _, ok := ix.get(placeFor(key), key); !ok {
			t.Fatalf("key %d of %d is gone", key, n)
		}
	}
	if ix.put(placeFor(1), 1, addressFor(1, 1)) || !ix.remove(placeFor(2), 2) {
		t.Fatal("updates and removals need no memory")
	}
	ix.arena.limit = 0
	if !ix.put(placeFor(n), n, addressFor(n, 0)) {
		t.Fatal("with memory again, the insertion still fails")
	}
}

func TestWhatWasDeferredMayComeAfterClose(t *testing.T) {
	table := epoch.New(1)
	ix := open(t, Options{Epoch: table})
	for key := uint64(0); table.Pending() == 0; key++ {
		ix.put(placeFor(key), key, addressFor(key, 0))
	}
	ix.Close()
	ix.guard.Leave()
	if n := table.Pending(); n != 0 {
		t.Fatalf("%d actions did not run", n)
	}
}

func TestRandomDrawsEveryEntryAboutEquallyOften(t *testing.T) {
	for _, name := range []string{"uniform", "one slot"} {
		t.Run(name, func(t *testing.T) {
			ix := open(t, Options{})
			n, each := size(100_000)/5, 20
			ix.fill(n, skews[name].place)
			drawn := make([]int, n)
			var pr Probe
			for r := range n * uint64(each) {
				if !ix.Random(r, &pr) {
					t.Fatal("found nothing")
				}
				drawn[keyAt(pr.Address())]++
			}
			// The variance of a fair draw would be each. Sub-tables that differ in
			// their load, up to two times, may add to it.
			variance, never := 0.0, 0
			for _, d := range drawn {
				variance += math.Pow(float64(d-each), 2) / float64(n)
				if d == 0 {
					never++
				}
			}
			if never > 0 || variance > float64(8*each) {
				t.Fatalf("%d of %d entries never drawn, variance %.0f", never, n, variance)
			}
		})
	}
}

func TestRandomFindsTheOnlyEntryAndNothingInAnEmptyIndex(t *testing.T) {
	ix := open(t, Options{Entries: 100_000})
	var pr Probe
	if ix.Random(1, &pr) {
		t.Fatal("found something in an empty index")
	}
	for key := range uint64(20) {
		ix.put(placeFor(key), key, addressFor(key, 0))
		if !ix.Random(key, &pr) || keyAt(pr.Address()) != key || pr.Place() != Known(placeFor(key)) {
			t.Fatalf("the only entry, key %d, was not found", key)
		}
		if !ix.Remove(&pr) {
			t.Fatal("a drawn entry cannot be removed")
		}
	}
}

func TestRandomGivesOnlyPresentEntriesWhileTheIndexGrows(t *testing.T) {
	ix := open(t, Options{})
	ix.put(placeFor(0), 0, addressFor(0, 0))
	ix.guard.Leave()
	n := size(300_000)
	var present atomic.Uint64
	present.Store(1)
	var wg sync.WaitGroup
	worker(t, &wg, ix.Index, func(refresh func()) {
		for key := uint64(1); key < n; key++ {
			present.Store(key + 1)
			ix.put(placeFor(key), key, addressFor(key, 0))
			refresh()
		}
		present.Store(n + 1)
	})
	worker(t, &wg, ix.Index, func(refresh func()) {
		for r := uint64(0); present.Load() <= n; r++ {
			var pr Probe
			if !ix.Random(r, &pr) || keyAt(pr.Address()) >= present.Load() {
				t.Errorf("drew %v of %d keys", pr.Address(), present.Load())
				return
			}
			refresh()
		}
	})
	wg.Wait()
}

func TestRoomThatWasPreparedNeedsNoSplits(t *testing.T) {
	const n = 100_000
	ix := open(t, Options{})
	ix.fill(100, placeFor) // What is there stays.
	first, last := record.Place(0), ^record.Place(0)
	for at, more := first, true; more; more = at != 0 {
		var ok bool
		if at, ok = ix.Prepare(first, last, n, at); !ok {
			t.Fatal("no memory")
		}
	}
	splits := ix.Metrics().Splits
	if splits == 0 {
		t.Fatal("nothing was prepared")
	}
	ix.fill(n, placeFor)
	if m := ix.Metrics(); m.Splits != splits || m.Rebuilds != 0 {
		t.Fatalf("%d splits were prepared, then %+v", splits, m)
	}
	if ix.Len() != n {
		t.Fatalf("%d entries, want %d", ix.Len(), n)
	}
}

func TestOnlyThePlacesThatWereNamedArePrepared(t *testing.T) {
	ix := open(t, Options{})
	first, last := record.Place(3)<<60, record.Place(4)<<60-1
	for at := first; at <= last; {
		var ok bool
		if at, ok = ix.Prepare(first, last, 10*startEntries, at); !ok {
			t.Fatal("no memory")
		}
	}
	depth := func(p record.Place) uint32 { return ix.dir.find(p).header().depth }
	if depth(first) != 8 || depth(last) != 8 || depth(last+1) != 2 || depth(0) != 3 || depth(^record.Place(0)) != 1 {
		t.Fatalf("depths are %d and %d inside, %d, %d and %d outside", depth(first), depth(last), depth(last+1), depth(0), depth(^record.Place(0)))
	}
}
