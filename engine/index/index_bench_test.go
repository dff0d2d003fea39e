package index

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/prefetch"
	"golang.org/x/sys/unix"
)

const (
	benchEntries = 10_000_000
	recordBytes  = 40 // header, key of 8, value of 8
	keyOffset    = 24
)

// benchStore is an index of ten million entries and the records they lead to:
// a lookup here ends with the key compared and the value read.
type benchStore struct {
	*Index
	log unsafe.Pointer
}

var sharedStore = sync.OnceValue(func() *benchStore {
	ix, err := New(Options{})
	if err != nil {
		panic(err)
	}
	log, err := newArena().mapChunk((benchEntries + 2) * recordBytes / chunkBytes * chunkBytes * 2)
	if err != nil {
		panic(err)
	}
	adviseHuge(log)
	s := &benchStore{ix, log.base}
	g, err := ix.Epoch().Register()
	if err != nil {
		panic(err)
	}
	defer g.Unregister()
	g.Enter()
	var pr Probe
	for key := range uint64(benchEntries) {
		a := record.Address((key + 1) * recordBytes)
		*(*uint64)(unsafe.Add(s.log, a+keyOffset)) = key
		for done := false; !done; {
			ix.Seek(placeFor(key), &pr)
			done = ix.Insert(&pr, a) == Inserted
		}
		if key%64 == 0 {
			g.Refresh()
		}
	}
	return s
})

func (s *benchStore) record(a record.Address) unsafe.Pointer { return unsafe.Add(s.log, a) }

func (s *benchStore) keyAt(a record.Address) uint64 {
	return *(*uint64)(unsafe.Add(s.log, a+keyOffset))
}

func (s *benchStore) find(pr *Probe, key uint64) bool {
	for pr.Next() {
		if s.keyAt(pr.Address()) == key {
			return true
		}
	}
	return false
}

// benchWorkers shares b.N operations out among goroutines, each inside a guard
// that is refreshed now and then.
func benchWorkers(b *testing.B, ix *Index, workers int, f func(random *rand.PCG, n int)) {
	var wg sync.WaitGroup
	each := b.N/workers + 1
	b.ReportAllocs()
	b.ResetTimer()
	start := cpuTime(b)
	for w := range uint64(workers) {
		worker(b, &wg, ix, func(refresh func()) {
			random := rand.NewPCG(w, w)
			for left := each; left > 0; left -= 4096 {
				f(random, min(left, 4096))
				refresh()
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
	b.ReportMetric((cpuTime(b)-start)/float64(b.N), "cpu-ns/op")
}

// cpuTime returns the processor time of this process, in nanoseconds: on a busy
// machine it says more than the clock.
func cpuTime(b *testing.B) float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkLookup(b *testing.B) {
	s := sharedStore()
	for _, workers := range []int{1, 2} {
		for _, hot := range []uint64{benchEntries, 5000} {
			b.Run(fmt.Sprintf("single/keys=%d/workers=%d", hot, workers), func(b *testing.B) {
				benchWorkers(b, s.Index, workers, func(random *rand.PCG, n int) {
					var pr Probe
					for range n {
						key := random.Uint64() % hot
						s.Seek(placeFor(key), &pr)
						if !s.find(&pr, key) {
							b.Error("missed a key")
						}
					}
				})
			})
		}
		for _, batch := range []int{16, 64} {
			b.Run(fmt.Sprintf("batch=%d/workers=%d", batch, workers), func(b *testing.B) {
				benchWorkers(b, s.Index, workers, func(random *rand.PCG, n int) {
					var keys [64]uint64
					var probes [64]Probe
					for ; n > 0; n -= batch {
						s.findBatch(b, random, keys[:batch], probes[:batch])
					}
				})
			})
		}
	}
}

// findBatch goes through a batch in stages: buckets, then records, then keys.
func (s *benchStore) findBatch(b *testing.B, random *rand.PCG, keys []uint64, probes []Probe) {
	for i := range keys {
		keys[i] = random.Uint64() % benchEntries
		s.SeekPrefetch(placeFor(keys[i]), &probes[i])
	}
	for i := range probes {
		pr := &probes[i]
		s.Start(pr)
		if pr.Next() {
			prefetch.T0(s.record(pr.Address()))
		}
	}
	for i := range probes {
		pr := &probes[i]
		if s.keyAt(pr.Address()) != keys[i] && !s.find(pr, keys[i]) {
			b.Error("missed a key")
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	s := sharedStore()
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			benchWorkers(b, s.Index, workers, func(random *rand.PCG, n int) {
				var pr Probe
				for range n {
					key := random.Uint64() % benchEntries
					for done := false; !done; {
						s.Seek(placeFor(key), &pr)
						done = s.find(&pr, key) && s.Update(&pr, pr.Address())
					}
				}
			})
		})
	}
}

// BenchmarkGrow inserts two million entries into an empty index.
func BenchmarkGrow(b *testing.B) {
	const entries = 2_000_000
	for _, workers := range []int{1, 2} {
		for _, sized := range []bool{false, true} {
			b.Run(fmt.Sprintf("sized=%v/workers=%d", sized, workers), func(b *testing.B) {
				start := cpuTime(b)
				for b.Loop() {
					growOnce(b, entries, workers, sized)
				}
				b.ReportMetric((cpuTime(b)-start)/entries/float64(b.N), "cpu-ns/entry")
				b.ReportMetric(entries*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
			})
		}
	}
}

func growOnce(b *testing.B, entries uint64, workers int, sized bool) {
	o := Options{}
	if sized {
		o.Entries = int(entries)
	}
	ix, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range uint64(workers) {
		worker(b, &wg, ix, func(refresh func()) {
			for key := w; key < entries; key += uint64(workers) {
				ix.put(placeFor(key), key, addressFor(key, 0))
				if key%64 == 0 {
					refresh()
				}
			}
		})
	}
	wg.Wait()
	ix.Epoch().Drain()
	ix.Close()
}

func BenchmarkWalk(b *testing.B) {
	s := sharedStore()
	g := enter(b, s.Index)
	defer g.Unregister()
	n := 0
	for b.Loop() {
		s.Walk(0, ^record.Place(0), func(record.Place, *Probe) bool { n++; return true })
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mentries/s")
}
