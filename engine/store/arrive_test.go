package store_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// forMoves runs f for each kind of target, with fresh moves.
func forMoves(t *testing.T, f func(*move, *rand.Rand)) {
	for name, o := range heirConfigs() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seedOf(t), 11))
			for n := range max(scale(12), 3) {
				t.Run(fmt.Sprint(n), func(t *testing.T) { f(newMove(t, o, rng), rng) })
			}
		})
	}
}

// serve lets clients work while all arrives, to the end of the arrival.
func (m *move) serve(rng *rand.Rand, life uint64) {
	m.t.Helper()
	var wg sync.WaitGroup
	pullers := rand.New(rand.NewPCG(rng.Uint64(), 1))
	wg.Go(func() {
		m.pullAll(pullers, everyLetter)
		m.settle()
	})
	if m.sends {
		wg.Go(m.send)
	}
	m.clients(rng.IntN(150), life)
	wg.Wait()
	m.post.end()
	m.settle()     // A letter that comes twice may tell of a record again.
	m.clock.Lock() // Nothing expires between a look and the map.
	defer m.clock.Unlock()
	if err := m.a.Finish(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	m.e.compare("arrived", m.st, m.owns)
	m.a.End()
	m.e.compare("after the end", m.st, m.owns)
}

// pullSomeWhile lets clients work while a part arrives.
func (m *move) pullSomeWhile(rng *rand.Rand, life uint64) {
	pullers, letters := rand.New(rand.NewPCG(rng.Uint64(), 1)), rng.IntN(6)
	var wg sync.WaitGroup
	wg.Go(func() { m.pullAll(pullers, letters) })
	m.clients(rng.IntN(100), life)
	if m.sends {
		m.send()
	}
	wg.Wait()
}

// settled compares both stores when the move is over, and the target in its next life.
func (m *move) settled() {
	m.t.Helper()
	if err := m.e.st.Retract(m.t.Context(), m.ranges); err != nil {
		m.t.Fatal(err)
	}
	m.e.compare("what the source keeps", m.e.st, m.ownsNot)
	m.close()
	if m.dev == nil {
		return
	}
	m.opts.Arriving = nil
	m.e.compare("opened again", open(m.t, m.opts), m.owns)
}

func TestWhatArrivesWhileItIsServedIsAsInAMap(t *testing.T) {
	t.Parallel()
	forMoves(t, func(m *move, rng *rand.Rand) {
		m.open()
		m.begin()
		m.serve(rng, 1)
		m.settled()
	})
}

func TestATargetThatDiedPullsEverythingAgainAndBringsNothingBack(t *testing.T) {
	t.Parallel()
	forMoves(t, func(m *move, rng *rand.Rand) {
		if !logged(m.opts) {
			return
		}
		m.open()
		for life := range uint64(1 + rng.IntN(2)) {
			m.begin()
			m.pullSomeWhile(rng, life)
			m.post.end()
			m.crash()
		}
		m.begin()
		m.serve(rng, 9)
		m.settled()
	})
}

func logged(o store.Options) bool { return o.Durability >= store.EverySec }

func TestTheHeirOfADeadSourceFinishesWhatPullsBegan(t *testing.T) {
	t.Parallel()
	forMoves(t, func(m *move, rng *rand.Rand) {
		m.open()
		m.begin()
		m.pullSomeWhile(rng, 1)
		m.post.end()
		again := logged(m.opts) && rng.IntN(2) == 0
		if again {
			m.crash()
		}
		im := importer(m.t, m.st, m.owns)
		importAll(m.t, im, m.e.die(), 2, rng)
		finish(m.t, im)
		if again {
			m.st.Arrived(m.ranges)
		} else {
			m.a.End()
		}
		m.e.compare("inherited", m.st, m.owns)
		m.close()
		if m.dev != nil {
			m.opts.Arriving = nil
			m.e.compare("opened again", open(m.t, m.opts), m.owns)
		}
	})
}

func TestWhatArrivesIsMadePartOfTheLogAfterThePulls(t *testing.T) {
	copies := hlogtest.New(t, seedOf(t))
	st, err := store.Open(store.Options{Device: device.NewMemory(), Durability: store.EverySec, Cluster: true, SegmentBytes: 64 << 10, Replicator: copies})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	a, err := st.Arrive(store.ArriveOptions{Ranges: []store.Range{everyPlace}, Ceiling: 7, Puller: noPuller{t}})
	if err != nil {
		t.Fatal(err)
	}
	a.Hasten(true)
	w, err := a.NewWorker()
	if err != nil {
		t.Fatal(err)
	}
	const records = 5000
	for _, b := range foreignLog(records) {
		if err := w.Import(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	sides := a.Pending()
	if least := records * 130 / (64 << 10); sides < least {
		t.Errorf("%d side segments while pulls are under way, want %d at least", sides, least)
	}
	if err := a.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := a.Pending(); n != 0 {
		t.Errorf("%d side segments after all is part of the log", n)
	}
	a.End()
	if keys, _ := st.Count(0); keys != records {
		t.Errorf("%d keys, want %d", keys, records)
	}
}

func TestAnArrivalThatIsPulledHoldsNobodyUpWhoWaitsForOtherSideSegments(t *testing.T) {
	st, err := store.Open(store.Options{Device: device.NewMemory(), Durability: store.EverySec, Cluster: true, SegmentBytes: 64 << 10, Replicator: hlogtest.New(t, seedOf(t))})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	a, err := st.Arrive(store.ArriveOptions{Ranges: []store.Range{everyPlace}, Ceiling: 7, Puller: noPuller{t}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.End()
	a.Hasten(true)
	b := bring(t, st)
	b.fill(t, "other", 2000)
	b.ss.Close()
	if err := b.side.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.side.Pending(); n != 0 {
		t.Errorf("%d side segments are not part of the log", n)
	}
}

// A source's cleaner sends parcel after parcel while an arrival settles, and each is safe before the next comes.
func TestAFlushGoesThroughWhatIsNotPartOfTheLogOnly(t *testing.T) {
	st := open(t, store.Options{Device: device.NewMemory(), Durability: store.EverySec, Cluster: true, Replicator: hlogtest.New(t, seedOf(t))})
	a, err := st.Arrive(store.ArriveOptions{Ranges: []store.Range{everyPlace}, Ceiling: 7, Puller: noPuller{t}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.End()
	if _, err := a.NewWorker(); err != nil { // One that goes on.
		t.Fatal(err)
	}
	parcels := foreignLog(100)
	for range 10 {
		for _, b := range parcels {
			w, err := a.NewWorker()
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Import(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			w.Close()
			if err := a.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := a.Sides(); n != 1 {
				t.Fatalf("%d sides after a flush, want that of the worker that goes on", n)
			}
		}
	}
	if keys, _ := st.Count(0); keys != 100 {
		t.Errorf("%d keys", keys)
	}
}

// Nothing of a source may seem safe at a target that has no place for it.
func TestWhatArrivesOfADatabaseThatThisNodeLacksIsRefused(t *testing.T) {
	st := open(t, store.Options{Device: device.NewMemory(), Durability: store.EverySec, Cluster: true, Databases: 16})
	a, err := st.Arrive(store.ArriveOptions{Ranges: []store.Range{everyPlace}, Ceiling: 7, Puller: noPuller{t}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.End()
	w, err := a.NewWorker()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b := make([]byte, record.Size(1, 1, false))
	record.Encode(b, &record.Header{Type: record.TypePut, Version: 5, Table: 16}, []byte("k"), []byte("v"), true)
	if err := w.Import(t.Context(), b); err == nil || !strings.Contains(err.Error(), "set databases to 17 or more") {
		t.Errorf("a record of database 16, at a node that has 16: %v", err)
	}
}
