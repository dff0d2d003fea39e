package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/store"
)

// A mill is a store in which all that is written builds on what others wrote
// before, on other heads:
//
//	accounts   transactions move money; the sum stays
//	ledger     each transaction counts it up and writes one of the pages in turn,
//	           so the count tells what every page must be
//	token      a key that transactions delete and put elsewhere; one is there
//	links      each session copies the link of the session before it, without a
//	           transaction; the first counts its own up: none is ahead of the one
//	           that it was copied from
//
// Whatever is left after a loss of power must be of one moment.
type mill struct {
	t    testing.TB
	opts store.Options
	dev  *device.Memory
	st   *store.Store
	crew []*miller

	issued        atomic.Uint64 // the ledger's highest count
	acked, synced atomic.Uint64 // of it, what was promised

	copies *hlogtest.Copies // elsewhere, if the store is replicated
}

// miller is one session at work.
type miller struct {
	m       *mill
	n       int
	ss      *store.Session
	rng     *rand.Rand
	inRound bool
	count   uint64 // the highest of this round
	pending []milled
}

// milled is a round that awaits its acknowledgement.
type milled struct {
	ticket store.Ticket
	count  uint64
}

const (
	millAccounts = 5
	millPages    = 4
	millSlots    = 3
	millMoney    = 1000
)

func millKeys(ss *store.Session, what string, n int) (keys []store.Key) {
	for i := range n {
		keys = append(keys, ss.Key(0, fmt.Appendf(nil, "%s:%d", what, i)))
	}
	return keys
}

func newMill(t testing.TB, o store.Options, crew int, seed uint64) *mill {
	return newMillWith(t, o, crew, seed, nil)
}

// newMillWith is newMill for a store with copies elsewhere.
func newMillWith(t testing.TB, o store.Options, crew int, seed uint64, copies *hlogtest.Copies) *mill {
	m := &mill{t: t, opts: o, copies: copies}
	for n := range crew {
		m.crew = append(m.crew, &miller{m: m, n: n, rng: rand.New(rand.NewPCG(seed, uint64(n)))})
	}
	m.start(device.NewMemory())
	ss := m.crew[0].ss
	for _, k := range millKeys(ss, "account", millAccounts) {
		until(t, ss, func() store.Status { return ss.Put(&k, store.Write{Value: u64(millMoney)}, nil) })
	}
	until(t, ss, func() store.Status {
		return ss.Put(&millKeys(ss, "slot", 1)[0], store.Write{Value: []byte("token")}, nil)
	})
	if err := ss.WaitDurable(ss.Seal()); err != nil {
		t.Fatal(err)
	}
	m.sync()
	return m
}

func (m *mill) start(d *device.Memory) {
	m.t.Helper()
	m.dev = d
	m.st = m.openWith(d, m.copies)
	for _, w := range m.crew {
		ss, err := m.st.NewSession()
		if err != nil {
			m.t.Fatal(err)
		}
		w.ss, w.pending, w.inRound, w.count = ss, nil, false, 0
	}
}

func (m *mill) openOn(d *device.Memory) *store.Store {
	m.t.Helper()
	return m.openWith(d, nil)
}

func (m *mill) openWith(d *device.Memory, copies *hlogtest.Copies) *store.Store {
	m.t.Helper()
	o := m.opts
	o.Device = d
	if copies != nil {
		o.Replicator = copies
	}
	st, err := store.Open(o)
	if err != nil {
		m.t.Fatal(err)
	}
	return st
}

func (m *mill) abandon() {
	for _, w := range m.crew {
		w.endRound()
		w.ss.Close()
	}
	_ = m.st.Close()
	m.dev.Close()
}

// sync makes all that is acknowledged safe from loss of power.
func (m *mill) sync() {
	m.t.Helper()
	acked := m.acked.Load()
	if err := m.st.Checkpoint(context.Background()); err != nil {
		m.t.Fatal(err)
	}
	lift(&m.synced, acked)
}

func lift(to *atomic.Uint64, n uint64) {
	for old := to.Load(); old < n && !to.CompareAndSwap(old, n); old = to.Load() {
	}
}

// step does one operation, in a round that may have begun before and may go on.
func (w *miller) step() {
	if !w.inRound {
		w.ss.Begin()
		w.inRound = true
	}
	acts := []func() store.Status{w.transfer, w.write, w.pass, w.copy}
	act := acts[w.rng.IntN(len(acts))]
	st := act()
	for st == store.Cold {
		w.endRound()
		if err := w.ss.Fetch(context.Background()); err != nil {
			w.m.t.Errorf("fetch: %v", err)
			return
		}
		w.ss.Begin()
		w.inRound = true
		st = act()
	}
	if st != store.OK {
		w.m.t.Errorf("session %d: %v %v", w.n, st, w.ss.Err())
	}
	if w.rng.IntN(3) == 0 {
		w.endRound()
	}
}

// endRound seals, and acknowledges the rounds that are durable.
func (w *miller) endRound() {
	if !w.inRound {
		return
	}
	w.pending = append(w.pending, milled{w.ss.Seal(), w.count})
	w.ss.End()
	w.inRound, w.count = false, 0
	for len(w.pending) > 0 && w.ss.Durable(w.pending[0].ticket) {
		lift(&w.m.acked, w.pending[0].count)
		w.pending = w.pending[1:]
	}
}

func (w *miller) put(k *store.Key, n uint64) { w.ss.Put(k, store.Write{Value: u64(n)}, nil) }

func (w *miller) get(k *store.Key) uint64 {
	v, _ := w.ss.Get(k)
	return number(v.Value)
}

// transfer moves money.
func (w *miller) transfer() store.Status {
	keys := millKeys(w.ss, "account", millAccounts)
	w.rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	if st := w.ss.Lock(keys[:2]); st != store.OK {
		return st
	}
	by := uint64(w.rng.IntN(9))
	from, to := w.get(&keys[0]), w.get(&keys[1])
	w.put(&keys[0], from-by)
	w.put(&keys[1], to+by)
	return w.ss.Commit()
}

// write counts the ledger up and writes the next page.
func (w *miller) write() store.Status {
	keys := append(millKeys(w.ss, "page", millPages), millKeys(w.ss, "ledger", 1)...)
	if st := w.ss.Lock(keys); st != store.OK {
		return st
	}
	n := w.get(&keys[millPages]) + 1
	lift(&w.m.issued, n)
	w.put(&keys[millPages], n)
	w.put(&keys[n%millPages], n)
	st := w.ss.Commit()
	if st == store.OK {
		w.count = max(w.count, n)
	}
	return st
}

// pass deletes the token and puts it elsewhere.
func (w *miller) pass() store.Status {
	keys := millKeys(w.ss, "slot", millSlots)
	if st := w.ss.Lock(keys); st != store.OK {
		return st
	}
	for i := range keys {
		if v, _ := w.ss.Get(&keys[i]); v.Exists() {
			w.ss.Delete(&keys[i], nil)
			w.ss.Put(&keys[(i+1)%len(keys)], store.Write{Value: []byte("token")}, nil)
			return w.ss.Commit()
		}
	}
	w.ss.Abort()
	w.m.t.Error("a transaction found no token")
	return store.OK
}

// copy writes the session's link, as the link of the session before it is.
func (w *miller) copy() store.Status {
	keys := millKeys(w.ss, "link", w.n+1)
	from, by := &keys[max(w.n-1, 0)], uint64(0)
	if w.n == 0 {
		by = 1
	}
	v, st := w.ss.Get(from)
	if st == store.Cold {
		return st
	}
	return w.ss.Put(&keys[w.n], store.Write{Value: u64(number(v.Value) + by)}, nil)
}

// unplug takes power away, and looks at what is left.
func (m *mill) unplug(what string, rng *rand.Rand) *device.Memory {
	m.t.Helper()
	least := m.synced.Load()
	if m.opts.Durability == store.Always {
		least = m.acked.Load()
	}
	clone := m.dev.PowerLoss(rng)
	most := m.issued.Load()
	count := m.look(what, clone, least, most)
	if rng.IntN(4) == 0 { // What recovery found, it keeps.
		st := m.openOn(clone)
		again := clone.PowerLoss(rng)
		m.look(what+", and again after recovery", again, count, count)
		again.Close()
		m.close(st)
	}
	return clone
}

func (m *mill) close(st *store.Store) {
	if err := st.Close(); err != nil {
		m.t.Error(err)
	}
}

// look opens a device and compares what is there. It returns the ledger's count.
func (m *mill) look(what string, d *device.Memory, least, most uint64) uint64 {
	m.t.Helper()
	st := m.openOn(d)
	defer m.close(st)
	ss, err := st.NewSession()
	if err != nil {
		m.t.Fatal(err)
	}
	defer ss.Close()
	read := func(key string, n int) (all []uint64) {
		for _, k := range millKeys(ss, key, n) {
			all = append(all, number(readKey(m.t, ss, 0, k.Bytes)))
		}
		return all
	}
	count := read("ledger", 1)[0]
	if count < least || count > most {
		m.t.Fatalf("%s: the ledger counts %d, must be within %d and %d", what, count, least, most)
	}
	for i, page := range read("page", millPages) {
		want := count - (count-uint64(i))%millPages // The last count that wrote it.
		if count < uint64(i) || want == 0 {
			want = 0
		}
		if page != want {
			m.t.Fatalf("%s: page %d is %d when the ledger counts %d, want %d", what, i, page, count, want)
		}
	}
	var sum uint64
	for _, n := range read("account", millAccounts) {
		sum += n
	}
	if sum != millAccounts*millMoney {
		m.t.Fatalf("%s: accounts hold %d, want %d", what, sum, millAccounts*millMoney)
	}
	if links := read("link", len(m.crew)); !slices.IsSortedFunc(links, func(a, b uint64) int { return int(b) - int(a) }) {
		m.t.Fatalf("%s: a link is ahead of the one that it was copied from: %d", what, links)
	}
	if tokens := len(scannedSlots(m.t, ss)); tokens != 1 {
		m.t.Fatalf("%s: there are %d tokens", what, tokens)
	}
	return count
}

func scannedSlots(t testing.TB, ss *store.Session) (there []string) {
	for _, k := range millKeys(ss, "slot", millSlots) {
		if readKey(t, ss, 0, k.Bytes) != nil {
			there = append(there, string(k.Bytes))
		}
	}
	return there
}

// goOn lives on with what a loss of power left.
func (m *mill) goOn(clone *device.Memory) {
	m.t.Helper()
	m.abandon()
	m.start(clone)
	var count uint64
	ss := m.crew[0].ss
	for _, k := range millKeys(ss, "ledger", 1) {
		count = number(readKey(m.t, ss, 0, k.Bytes))
	}
	m.issued.Store(count)
	m.acked.Store(count)
	m.synced.Store(count)
}

// powerConfigs have more sessions than heads, or as many.
func powerConfigs() map[string]store.Options {
	const kib = 1 << 10
	return map[string]store.Options{
		"always/4KiB":          {Durability: store.Always, SegmentBytes: 4 * kib, Heads: 4},
		"always/64KiB":         {Durability: store.Always, SegmentBytes: 64 * kib, Heads: 3},
		"everysec/4KiB":        {Durability: store.EverySec, SegmentBytes: 4 * kib, Heads: 4},
		"everysec/64KiB":       {Durability: store.EverySec, SegmentBytes: 64 * kib, Heads: 3},
		"everysec/16KiB/spill": {Durability: store.EverySec, SegmentBytes: 16 * kib, Heads: 2, MemoryBytes: 512 * kib},
	}
}

func TestALossOfPowerAtAnyStepLeavesOneMoment(t *testing.T) {
	t.Parallel()
	for name, o := range powerConfigs() {
		o.MemoryBytes = 0 // One would wait for memory that the guards of the others hold.
		t.Run(name, func(t *testing.T) {
			seed := seedOf(t)
			rng := rand.New(rand.NewPCG(seed, 99))
			m := newMill(t, o, 4, seed)
			defer func() { m.abandon() }()
			for n := range scale(200) {
				for range 1 + rng.IntN(30) {
					m.crew[rng.IntN(len(m.crew))].step()
				}
				if rng.IntN(20) == 0 {
					m.sync()
				}
				clone := m.unplug(fmt.Sprintf("loss %d", n), rng)
				if rng.IntN(10) == 0 {
					m.goOn(clone)
				} else {
					clone.Close()
				}
			}
		})
	}
}

func TestALossOfPowerInTheMiddleOfEverythingLeavesOneMoment(t *testing.T) {
	t.Parallel()
	for name, o := range powerConfigs() {
		t.Run(name, func(t *testing.T) {
			seed := seedOf(t)
			rng := rand.New(rand.NewPCG(seed, 99))
			m := newMill(t, o, 4, seed)
			defer func() { m.abandon() }()
			for life := range 2 + scale(6) {
				var last *device.Memory
				m.meanwhile(func() {
					for n := range 1 + rng.IntN(10) {
						if rng.IntN(4) == 0 {
							m.sync()
						}
						if last != nil {
							last.Close()
						}
						last = m.unplug(fmt.Sprintf("life %d, loss %d", life, n), rng)
					}
				})
				m.goOn(last)
			}
		})
	}
}

// meanwhile runs f while all sessions are at work.
func (m *mill) meanwhile(f func()) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for _, w := range m.crew {
		wg.Go(func() {
			for !stop.Load() && !m.t.Failed() {
				w.step()
				pace(m.t, m.dev, 100*m.opts.SegmentBytes, &stop)
			}
			w.endRound()
		})
	}
	f()
}

func TestALossOfPowerLeavesNoSwapWithoutWhatCameBeforeIt(t *testing.T) {
	dev := device.NewMemory()
	o := store.Options{Device: dev, Durability: store.EverySec, Databases: 2}
	st := open(t, o)
	ss := session(t, st)
	k := ss.Key(0, []byte("k"))
	ss.Begin()
	ss.Put(&k, store.Write{Value: []byte("v")}, nil)
	ss.Seal()
	ss.End()
	if err := st.Swap(0, 1); err != nil {
		t.Fatal(err)
	}
	o.Device = dev.PowerLoss(losingAll())
	if got := readKey(t, session(t, open(t, o)), 1, []byte("k")); string(got) != "v" {
		t.Fatalf("%q is where the swap should have brought the record", got)
	}
}

// losingAll makes a loss of power take every page that was not synced.
func losingAll() *rand.Rand { return rand.New(zeroes{}) }

type zeroes struct{}

func (zeroes) Uint64() uint64 { return 0 }
