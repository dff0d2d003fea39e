package store_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// A world is a store, sessions that write to it, and a memory of what they
// wrote. It can be cloned as a crash would leave it; then the clone is opened
// and every key must be what it may be:
//
//	fates of a key    absent  a  b  c  d          each of one writer, in its order
//	acknowledged                 ^                kept by a crash of the process
//	synced                 ^                      kept by a loss of power
//	issued                            ^           nothing beyond was ever asked for
//
// Besides keys of their own the sessions share counters, pairs and accounts,
// for which sums must hold.
type world struct {
	t      testing.TB
	opts   store.Options
	dev    *device.Memory
	clock  *atomic.Int64 // Unix milliseconds
	st     *store.Store
	owners []*owner
	shared sums

	copies *hlogtest.Copies // elsewhere, if the store is replicated
	heir   *hlogtest.Copies // what the next life finds of them
}

// seedOf gives the seed of a randomised test, and says how to repeat it.
func seedOf(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("OSTRO_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("OSTRO_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("seed: OSTRO_SEED=%d", seed)
	return seed
}

// newWorld opens a store of its own for as many sessions.
func newWorld(t testing.TB, o store.Options, owners int, seed uint64) *world {
	t.Helper()
	return newWorldWith(t, o, owners, seed, nil)
}

// newWorldWith is newWorld for a store with copies elsewhere.
func newWorldWith(t testing.TB, o store.Options, owners int, seed uint64, copies *hlogtest.Copies) *world {
	t.Helper()
	w := &world{t: t, opts: o, dev: device.NewMemory(), clock: new(atomic.Int64), heir: copies}
	w.clock.Store(1_000_000)
	for n := range owners {
		w.owners = append(w.owners, newOwner(w, n+1, rand.New(rand.NewPCG(seed, uint64(n)))))
	}
	w.start(w.dev)
	w.shared.open(w)
	return w
}

// optionsAt gives the options for a device and a clock.
func (w *world) optionsAt(d *device.Memory, now func() int64) store.Options {
	o := w.opts
	o.Device, o.Now, o.Databases = d, now, len(w.owners)+1
	return o
}

// start opens the store on d, with a session for each owner.
func (w *world) start(d *device.Memory) {
	w.t.Helper()
	opts := w.optionsAt(d, w.clock.Load)
	if w.copies = w.heir; w.copies != nil {
		opts.Replicator = w.copies
	}
	st, err := store.Open(opts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.st, w.dev = st, d
	for _, o := range w.owners {
		if o.ss, err = st.NewSession(); err != nil {
			w.t.Fatal(err)
		}
		o.acks = nil
	}
}

// stop closes the store as an operator would.
func (w *world) stop() {
	w.t.Helper()
	for _, o := range w.owners {
		o.settle()
		o.ss.Close()
	}
	if err := w.st.Close(); err != nil {
		w.t.Error(err)
	}
	w.inherit()
}

// inherit fixes what the next life finds of the copies elsewhere.
func (w *world) inherit() {
	if w.copies != nil {
		w.heir = w.copies.Next()
	}
}

// abandon throws the store away, as its process' death would.
func (w *world) abandon() {
	for _, o := range w.owners {
		o.ss.Close()
	}
	_ = w.st.Close()
	w.dev.Close()
}

// meanwhile runs f while all sessions are at work.
func (w *world) meanwhile(f func()) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for _, o := range w.owners {
		wg.Go(func() {
			for !stop.Load() && !w.t.Failed() {
				o.step()
				pace(w.t, w.dev, 400*w.opts.SegmentBytes, &stop)
			}
		})
	}
	f()
}

// pace holds a session back while the cleaner is far behind: a handful of keys
// is alive in all this.
func pace(t testing.TB, d *device.Memory, most int, stop *atomic.Bool) {
	if !await.Comes(func() bool {
		used, _, _ := d.Usage()
		return used < int64(most) || stop.Load()
	}) {
		t.Error("the cleaner does not catch up")
	}
}

// sync makes all that is acknowledged safe from loss of power.
func (w *world) sync() {
	w.t.Helper()
	var marks []mark
	for _, o := range w.owners {
		for _, h := range o.keys {
			marks = append(marks, mark{h, int(h.acked.Load())})
		}
	}
	sums := w.shared.acked()
	if err := w.st.Checkpoint(context.Background()); err != nil {
		w.t.Error(err)
		return
	}
	for _, m := range marks {
		raise(&m.of.synced, int64(m.fate))
	}
	w.shared.noteSynced(sums)
}

// death is a way to lose the process.
type death struct {
	name   string
	power  bool
	choose func(*device.Memory) *device.Memory
}

// killed takes everything from the process but what it stored.
func killed() death {
	return death{"killed", false, (*device.Memory).Crash}
}

// unplugged also takes what was not synced, or a part of it.
func unplugged(rng *rand.Rand) death {
	return death{"unplugged", true, func(d *device.Memory) *device.Memory { return d.PowerLoss(rng) }}
}

// bounds tell what a key may be after a death.
type bounds struct {
	least, most []int
	sums        sumBounds
	now         int64
}

// die clones the device as d leaves it, with what may be found on it. Sessions
// may go on meanwhile.
func (w *world) die(d death) (*device.Memory, bounds) {
	var b bounds
	synced := d.power && w.opts.Durability != store.Always || w.opts.Durability < store.EverySec
	for _, o := range w.owners {
		for _, h := range o.keys {
			b.least = append(b.least, h.least(synced))
		}
	}
	b.sums.least = w.shared.least(synced)
	w.inherit()
	clone := d.choose(w.dev)
	for _, o := range w.owners {
		for _, h := range o.keys {
			b.most = append(b.most, h.last())
		}
	}
	b.sums.most = w.shared.issued()
	b.now = w.clock.Load()
	return clone, b
}

// verify opens a clone and compares it to what it may be.
func (w *world) verify(what string, clone *device.Memory, b bounds) {
	w.t.Helper()
	st, err := store.Open(w.optionsAt(clone, func() int64 { return b.now }))
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	defer clone.Close()
	defer func() {
		if err := st.Close(); err != nil {
			w.t.Errorf("%s: close: %v", what, err)
		}
	}()
	ss, err := st.NewSession()
	if err != nil {
		w.t.Fatal(err)
	}
	defer ss.Close()
	w.compare(what, ss, b)
}

// compare looks at every key through ss.
func (w *world) compare(what string, ss *store.Session, b bounds) {
	w.t.Helper()
	n := 0
	for _, o := range w.owners {
		present := 0
		for _, h := range o.keys {
			got := o.read(ss, h)
			if got != nil {
				present++
			}
			if _, ok := h.explain(got, b.least[n], b.most[n], b.now); !ok {
				w.t.Fatalf("%s: %s is %s, may be %s", what, h.key, brief(got), h.between(b.least[n], b.most[n], b.now))
			}
			n++
		}
		if seen := scanned(w.t, ss, o.db); len(seen) != present {
			w.t.Fatalf("%s: a scan of database %d shows %d keys, %d are there", what, o.db, len(seen), present)
		}
	}
	w.shared.check(what, ss, b.sums)
}

// reopen goes on with what a death left: what the keys are now is what they
// always were.
func (w *world) reopen(what string, clone *device.Memory, b bounds) {
	w.t.Helper()
	w.abandon()
	w.clock.Store(max(w.clock.Load(), b.now))
	w.start(clone)
	n := 0
	for _, o := range w.owners {
		for _, h := range o.keys {
			got := o.read(o.ss, h)
			i, ok := h.explain(got, b.least[n], b.most[n], w.clock.Load())
			if !ok {
				w.t.Fatalf("%s: %s is %s, may be %s", what, h.key, brief(got), h.between(b.least[n], b.most[n], b.now))
			}
			h.restart(i)
			n++
		}
	}
	w.shared.check(what, w.owners[0].ss, b.sums)
	w.shared.restart(w.owners[0].ss)
}

// whole are the bounds of a store that was closed in good order.
func (w *world) whole() bounds {
	var b bounds
	for _, o := range w.owners {
		for _, h := range o.keys {
			b.least = append(b.least, h.last())
			b.most = append(b.most, h.last())
		}
	}
	b.sums.least, b.sums.most = w.shared.issued(), w.shared.issued()
	b.now = w.clock.Load()
	return b
}

// fate is what a key became: a value, or absent.
type fate struct {
	value  []byte
	expire int64
}

// at tells what a reader sees of it.
func (f fate) at(now int64) []byte {
	if f.value == nil || f.expire != 0 && f.expire <= now {
		return nil
	}
	return f.value
}

// history is what became of one key. Only its owner adds to it.
type history struct {
	key           []byte
	mu            sync.Mutex
	fates         []fate
	acked, synced atomic.Int64 // the last fate that must survive
}

func (h *history) issue(f fate) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fates = append(h.fates, f)
	return len(h.fates) - 1
}

// withdraw takes the last fate back: the store refused it.
func (h *history) withdraw() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fates = h.fates[:len(h.fates)-1]
}

func (h *history) last() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.fates) - 1
}

func (h *history) fate(i int) fate {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fates[i]
}

func (h *history) least(synced bool) int {
	if synced {
		return int(h.synced.Load())
	}
	return int(h.acked.Load())
}

// explain finds the last fate within bounds that looks like got. Power may
// have taken fates in the middle, so all of them count.
func (h *history) explain(got []byte, least, most int, now int64) (int, bool) {
	for i := most; i >= least; i-- {
		f := h.fate(i).at(now)
		if (f == nil) == (got == nil) && bytes.Equal(f, got) {
			return i, true
		}
	}
	return 0, false
}

func (h *history) between(least, most int, now int64) (s string) {
	for i := least; i <= most; i++ {
		s += fmt.Sprintf(" [%d %s]", i, brief(h.fate(i).at(now)))
	}
	return s
}

// restart forgets all but fate i, which is what a new life begins with.
func (h *history) restart(i int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fates = []fate{h.fates[i]}
	h.acked.Store(0)
	h.synced.Store(0)
}

func brief(v []byte) string {
	if v == nil {
		return "absent"
	}
	return fmt.Sprintf("%q(%d)", v[:min(len(v), 24)], len(v))
}

// mark is a fate of a history.
type mark struct {
	of   *history
	fate int
}

// raise lifts a mark that several may lift.
func raise(m *atomic.Int64, n int64) {
	for old := m.Load(); old < n; old = m.Load() {
		if m.CompareAndSwap(old, n) {
			return
		}
	}
}

// read gives the value of a key, nil if it is absent.
func (o *owner) read(ss *store.Session, h *history) []byte {
	o.w.t.Helper()
	return readKey(o.w.t, ss, o.db, h.key)
}

// readKey gives a copy of the value of a key, nil if it is absent.
func readKey(t testing.TB, ss *store.Session, db int, key []byte) (value []byte) {
	t.Helper()
	k := ss.Key(db, key)
	s := until(t, ss, func() store.Status {
		v, s := ss.Get(&k)
		if s == store.OK {
			value = append([]byte{}, v.Value...)
		}
		return s
	})
	if s != store.OK && s != store.NotFound {
		t.Fatalf("read %s: %v %v", key, s, ss.Err())
	}
	return value
}

// judge is what testing.T and rapid.T have in common.
type judge interface {
	Helper()
	Fatalf(format string, args ...any)
}

// scanned gives the keys that a whole scan of a database shows.
func scanned(t judge, ss *store.Session, db int) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for cursor := uint64(0); ; {
		var part []string
		var next uint64
		s := attempt(ss, func() (s store.Status) {
			part = part[:0]
			next, s = ss.Scan(db, cursor, 100, func(key []byte, _ *store.View) { part = append(part, string(key)) })
			return s
		})
		if s != store.OK {
			t.Fatalf("scan: %v %v", s, ss.Err())
		}
		for _, k := range part {
			seen[k]++
		}
		if cursor = next; cursor == 0 {
			return seen
		}
	}
}

func u64(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
