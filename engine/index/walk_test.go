package index

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
)

// fill puts keys [0, n).
func (f fixture) fill(n uint64, place func(uint64) record.Place) {
	for key := range n {
		f.put(place(key), key, addressFor(key, 0))
		if key%64 == 0 {
			f.guard.Refresh()
		}
	}
}

func TestStepMeetsEveryKeyOnceThoughTheIndexGrowsBetweenSteps(t *testing.T) {
	for _, c := range []struct {
		name         string
		place        func(uint64) record.Place
		before, grow uint64
	}{
		{"from one sub-table to many", placeFor, 4000, size(300_000)},
		{"from many to more", placeFor, size(100_000), size(300_000)},
		{"in one slot", skews["one slot"].place, size(20_000), size(100_000)},
		{"past the splittable bits", skews["all known bits"].place, 5000, 15_000},
		{"not at all", placeFor, 50_000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			ix := open(t, Options{})
			ix.fill(c.before, c.place)
			seen := make([]int, c.before)
			grown, steps := uint64(0), uint64(0)
			for cursor := uint64(0); ; steps++ {
				cursor = ix.Step(cursor, 10, func(pr *Probe) bool {
					if key := keyAt(pr.Address()); key < c.before {
						seen[key]++
					}
					return true
				})
				if cursor == 0 {
					break
				}
				if cursor >= 1<<63 {
					t.Fatalf("cursor %#x does not fit in 63 bits", cursor)
				}
				for ; grown < min(c.grow, steps*c.grow/60); grown++ {
					key := c.before + grown
					ix.put(c.place(key), key, addressFor(key, 0))
				}
				ix.guard.Refresh()
			}
			for key, n := range seen {
				if n != 1 {
					t.Fatalf("key %d was met %d times", key, n)
				}
			}
		})
	}
}

func TestStepMeetsEveryKeyWhileOthersWrite(t *testing.T) {
	n := size(50_000)
	ix := open(t, Options{})
	ix.fill(n, placeFor)
	var done atomic.Bool
	var wg sync.WaitGroup
	for w := range uint64(2) {
		worker(t, &wg, ix.Index, func(refresh func()) {
			random := rand.New(rand.NewPCG(5, w))
			for i := uint64(0); !done.Load(); i++ {
				ix.increment(random.Uint64N(n)) // stable keys move
				key := n + random.Uint64N(20*n) // others come and go
				if i%3 == 0 {
					ix.remove(placeFor(key), key)
				} else {
					ix.put(placeFor(key), key, addressFor(key, 0))
				}
				refresh()
			}
		})
	}
	for range 5 {
		seen := make([]int, n)
		for cursor, first := uint64(0), true; cursor != 0 || first; first = false {
			cursor = ix.Step(cursor, 20, func(pr *Probe) bool {
				if key := keyAt(pr.Address()); key < n {
					seen[key]++
				}
				return true
			})
			ix.guard.Refresh()
		}
		for key, met := range seen {
			if met != 1 {
				t.Fatalf("key %d was met %d times", key, met)
			}
		}
	}
	done.Store(true)
	wg.Wait()
}

func TestStepStopsAfterTheBucketInWhichItIsTold(t *testing.T) {
	ix := open(t, Options{})
	ix.fill(3000, placeFor)
	seen := map[uint64]int{}
	calls := 0
	for cursor, first := uint64(0), true; cursor != 0 || first; first = false {
		before := len(seen)
		cursor = ix.Step(cursor, 1000, func(pr *Probe) bool {
			seen[keyAt(pr.Address())]++
			return false
		})
		if got := len(seen) - before; got > 20 {
			t.Fatalf("%d entries in one bucket", got)
		}
		calls++
	}
	if len(seen) != 3000 || calls < 500 {
		t.Fatalf("met %d keys in %d steps", len(seen), calls)
	}
}

func TestStepEndsFromAnyCursor(t *testing.T) {
	ix := open(t, Options{})
	ix.fill(30_000, placeFor)
	random := rand.New(rand.NewPCG(1, 1))
	for range size(200) {
		cursor := random.Uint64() >> random.Uint32N(64)
		for steps := 0; ; steps++ {
			if cursor = ix.Step(cursor, primaryBuckets, func(*Probe) bool { return true }); cursor == 0 {
				break
			}
			if steps > 1000 {
				t.Fatalf("still going at cursor %#x", cursor)
			}
		}
	}
}

func TestWalkMeetsExactlyTheEntriesThatMayLieInTheRange(t *testing.T) {
	for name, skew := range skews {
		t.Run(name, func(t *testing.T) {
			n, place := uint64(6000), skew.place
			if skew.crowded {
				n = 2000
			}
			ix := open(t, Options{})
			ix.fill(n, place)
			random := rand.New(rand.NewPCG(9, 9))
			for range size(60) {
				from, to := place(random.Uint64N(n)), place(random.Uint64N(n))
				switch random.Uint32N(3) {
				case 0:
					from, to = record.Place(random.Uint64()), record.Place(random.Uint64())
				case 1:
					to = from + record.Place(random.Uint64()>>random.Uint32N(64))
				}
				from, to = min(from, to), max(from, to)
				ix.checkWalk(t, from, to, n, place)
			}
			ix.checkWalk(t, 0, ^record.Place(0), n, place)
		})
	}
}

func (ix *Index) checkWalk(t *testing.T, from, to record.Place, n uint64, place func(uint64) record.Place) {
	t.Helper()
	seen := make([]int, n)
	ix.Walk(from, to, func(known record.Place, pr *Probe) bool {
		key := keyAt(pr.Address())
		if known != Known(place(key)) {
			t.Fatalf("key %d: known bits %#x, want %#x", key, known, Known(place(key)))
		}
		seen[key]++
		return true
	})
	for key, met := range seen {
		p := place(uint64(key))
		if want := someLieBetween(Known(p), from, to); (met == 1) != want || met > 1 {
			t.Fatalf("[%#x, %#x]: place %#x met %d times, want %v", from, to, p, met, want)
		}
		if p >= from && p <= to && met != 1 {
			t.Fatalf("[%#x, %#x]: place %#x lies in it and was not met", from, to, p)
		}
	}
}

// someLieBetween tells by search what mayLie computes: the least place with the
// known bits that is not below from.
func someLieBetween(known, from, to record.Place) bool {
	low, high := record.Place(0), record.Place(1<<22-1)
	for low < high {
		middle := (low + high) / 2
		if known|middle<<10 >= from {
			high = middle
		} else {
			low = middle + 1
		}
	}
	p := known | low<<10
	return p >= from && p <= to
}

func TestWalksOfDisjointRangesShareTheWorkWhileTheIndexGrows(t *testing.T) {
	n := size(100_000)
	ix := open(t, Options{})
	ix.fill(n, placeFor)
	const parts = 7
	seen := make([]atomic.Int32, n)
	var wg sync.WaitGroup
	for i := range uint64(parts) {
		worker(t, &wg, ix.Index, func(func()) {
			from, to := ^uint64(0)/parts*i, ^uint64(0)/parts*(i+1)-1
			if i == parts-1 {
				to = ^uint64(0)
			}
			ix.Walk(record.Place(from), record.Place(to), func(_ record.Place, pr *Probe) bool {
				key := keyAt(pr.Address())
				// A walk meets what may lie in its range; here the key tells what does.
				if p := uint64(placeFor(key)); key < n && p >= from && p <= to {
					seen[key].Add(1)
				}
				return true
			})
		})
	}
	worker(t, &wg, ix.Index, func(refresh func()) {
		for key := n; key < 4*n; key++ {
			ix.put(placeFor(key), key, addressFor(key, 0))
			refresh()
		}
	})
	ix.guard.Leave()
	wg.Wait()
	for key := range seen {
		if met := seen[key].Load(); met != 1 {
			t.Fatalf("key %d was met %d times", key, met)
		}
	}
}

func TestWalkEndsWhenToldAndItsProbesCanChangeEntries(t *testing.T) {
	ix := open(t, Options{})
	ix.fill(5000, placeFor)
	met := 0
	ix.Walk(0, ^record.Place(0), func(record.Place, *Probe) bool {
		met++
		return met < 10
	})
	if met < 10 || met > 30 {
		t.Fatalf("told to end after 10 entries, met %d", met)
	}
	ix.Walk(0, ^record.Place(0), func(_ record.Place, pr *Probe) bool {
		if key := keyAt(pr.Address()); key%2 == 0 {
			if !ix.Remove(pr) {
				t.Errorf("key %d cannot be removed", key)
			}
		} else if !ix.Update(pr, addressFor(key, 5)) {
			t.Errorf("key %d cannot be updated", key)
		}
		return true
	})
	for key := range uint64(5000) {
		a, ok := ix.get(placeFor(key), key)
		if ok != (key%2 == 1) || ok && a != addressFor(key, 5) {
			t.Fatalf("key %d: address %v, found %v", key, a, ok)
		}
	}
}

func TestDumpLoadsIntoAnEqualIndex(t *testing.T) {
	for name, skew := range skews {
		t.Run(name, func(t *testing.T) {
			const n = 1600
			place := skew.place
			a, b := open(t, Options{}), open(t, Options{Entries: n})
			a.fill(n, place)
			a.guard.Leave()
			err := a.Dump(func(known record.Place, address record.Address) error {
				if !b.Load(known, address) {
					return errors.New("no memory")
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for key := range uint64(n) {
				if at, ok := b.get(place(key), key); !ok || at != addressFor(key, 0) {
					t.Fatalf("key %d: address %v, found %v", key, at, ok)
				}
			}
			if a.Len() != b.Len() {
				t.Fatalf("Len is %d, was %d", b.Len(), a.Len())
			}
		})
	}
}

func TestDumpEndsWithTheErrorOfItsReceiver(t *testing.T) {
	ix := open(t, Options{})
	ix.fill(100, placeFor)
	ix.guard.Leave()
	full := errors.New("disk full")
	calls := 0
	err := ix.Dump(func(record.Place, record.Address) error { calls++; return full })
	if !errors.Is(err, full) || calls != 1 {
		t.Fatalf("got %v after %d calls", err, calls)
	}
}

// Keys that are removed and inserted again all the time never come twice, and
// keys that stay always come.
func TestDumpGivesNoKeyTwiceWhileOthersWrite(t *testing.T) {
	stay, churned := size(20_000), size(20_000)
	ix := open(t, Options{})
	ix.fill(stay, placeFor)
	ix.guard.Leave()
	var done atomic.Bool
	var wg sync.WaitGroup
	for w := range uint64(2) {
		worker(t, &wg, ix.Index, func(refresh func()) {
			random := rand.New(rand.NewPCG(5, w))
			for i := uint64(0); !done.Load(); i++ {
				key := stay + random.Uint64N(churned)
				if ix.remove(placeFor(key), key); i%4 != 0 {
					ix.put(placeFor(key), key, addressFor(key, i))
				}
				if grow := stay + churned + i*2 + w; grow < 20*stay {
					ix.put(placeFor(grow), grow, addressFor(grow, 0))
				}
				refresh()
			}
		})
	}
	for range 5 {
		seen := map[uint64]bool{}
		err := ix.Dump(func(_ record.Place, a record.Address) error {
			if seen[keyAt(a)] {
				t.Errorf("key %d came twice", keyAt(a))
			}
			seen[keyAt(a)] = true
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		for key := range stay {
			if !seen[key] {
				t.Errorf("key %d did not come", key)
				break
			}
		}
	}
	done.Store(true)
	wg.Wait()
}

// One key hops from the front of a long chain to its end and back. A dump that
// read the words one after the other would meet it at both.
func TestDumpReadsABucketAtOneMoment(t *testing.T) {
	const crowd, hopper, blocker = 600, 1000, 1001
	place := skews["one single place"].place
	ix := open(t, Options{})
	ix.put(place(hopper), hopper, addressFor(hopper, 0)) // takes the first word
	ix.fill(crowd, place)
	ix.guard.Leave()
	var done atomic.Bool
	var wg sync.WaitGroup
	worker(t, &wg, ix.Index, func(refresh func()) {
		for i := uint64(0); !done.Load(); i++ {
			ix.remove(place(hopper), hopper)
			ix.put(place(blocker), blocker, addressFor(blocker, i)) // takes its word
			ix.put(place(hopper), hopper, addressFor(hopper, i))    // goes to the end
			ix.remove(place(hopper), hopper)
			ix.remove(place(blocker), blocker)
			ix.put(place(hopper), hopper, addressFor(hopper, i)) // comes back
			refresh()
		}
	})
	for range size(4000) {
		met := 0
		err := ix.Dump(func(_ record.Place, a record.Address) error {
			if keyAt(a) == hopper {
				met++
			}
			return nil
		})
		if err != nil || met > 1 {
			t.Errorf("met the key %d times, error %v", met, err)
			break
		}
	}
	done.Store(true)
	wg.Wait()
}

func TestCollectFindsWhatStepRangeVisits(t *testing.T) {
	for name, place := range map[string]func(uint64) record.Place{"spread": placeFor, "one slot": skews["one slot"].place} {
		t.Run(name, func(t *testing.T) {
			ix := open(t, Options{})
			ix.fill(20_000, place)
			rng := rand.New(rand.NewPCG(1, 2))
			for range 50 {
				from, to := place(rng.Uint64N(20_000)), place(rng.Uint64N(20_000))
				from, to = min(from, to), max(from, to)
				var want, got []Found
				for cursor, more := uint64(0), true; more; more = cursor != 0 {
					cursor = ix.StepRange(from, to, cursor, 7, func(pr *Probe) bool {
						want = append(want, Found{pr.Address(), pr.Place()})
						return true
					})
				}
				for cursor, more := uint64(0), true; more; more = cursor != 0 {
					got, cursor = ix.Collect(from, to, cursor, got)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("from %#x to %#x: %d entries were collected, %d visited", from, to, len(got), len(want))
				}
			}
		})
	}
}
