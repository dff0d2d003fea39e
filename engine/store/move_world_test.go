package store_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// A move is a source, an estate that nobody writes to any more, and a target that serves
// some ranges of it while they arrive. What both hold together is the estate's map: clients
// of the target change it.
//
//	source ── Pull, PullKeys ──> mail: letters, in any order, some twice ──> Import ── target
//	   ^                                                                                 |
//	   +---------------------------- Want <──────────── clients, each with keys of its own
type move struct {
	t      testing.TB
	e      *estate
	ranges []store.Range
	opts   store.Options
	dev    *device.Memory // of the target; nil if it has none
	st     *store.Store   // the target
	a      *store.Arrival
	post   *mail
	seed   uint64

	indirect bool // cold records move by word of them
	tiered   bool // the target can read the source's segments
	sends    bool // the source's cleaner sends what is the target's

	mu      sync.Mutex   // of the estate's map
	clock   sync.RWMutex // held for writing by whoever moves the time
	results []done       // of operations that the source ran
}

// done is an operation that was run, and what it answered.
type done struct {
	db     int
	name   string
	id     store.OpID
	result string
}

const moveClients = 3

// newMove makes a source that has lived, and a target for some of its ranges.
func newMove(t testing.TB, o store.Options, rng *rand.Rand) *move {
	t.Helper()
	memory := int64(0)
	if rng.IntN(2) == 0 {
		memory = 64 << 10
	}
	m := &move{t: t, indirect: rng.IntN(3) > 0, e: newEstateWith(t, rng, rng.IntN(2) == 0, memory), seed: rng.Uint64()}
	m.tiered, m.sends = m.indirect && rng.IntN(2) == 0, m.indirect && rng.IntN(2) == 0
	m.e.live(rng.IntN(600))
	m.runOnce(rng)
	m.ranges = someRanges(rng)
	m.opts, m.dev = m.e.heirOptions(o)
	return m
}

// someRanges gives one or several parts of all places, with odd borders or with those of
// slots.
func someRanges(rng *rand.Rand) (ranges []store.Range) {
	if rng.IntN(3) == 0 {
		return []store.Range{{First: 0, Last: ^record.Place(0)}}
	}
	var borders []record.Place
	for range 2 * (1 + rng.IntN(3)) {
		p := record.Place(rng.Uint64())
		if rng.IntN(2) == 0 {
			p &^= 1<<50 - 1
		}
		borders = append(borders, p)
	}
	slices.Sort(borders)
	for i := 0; i < len(borders); i += 2 {
		if borders[i] < borders[i+1] {
			ranges = append(ranges, store.Range{First: borders[i], Last: borders[i+1] - 1})
		}
	}
	if len(ranges) == 0 {
		return []store.Range{{First: 0, Last: ^record.Place(0)}}
	}
	return ranges
}

func (m *move) owns(p record.Place) bool {
	return slices.ContainsFunc(m.ranges, func(r store.Range) bool { return r.First <= p && p <= r.Last })
}

func (m *move) ownsNot(p record.Place) bool { return !m.owns(p) }

// runOnce lets the source run some operations whose results must be known to the target.
func (m *move) runOnce(rng *rand.Rand) {
	for n := range rng.IntN(8) {
		ss := m.e.ss[0]
		d := done{rng.IntN(estateDBs), fmt.Sprintf("key:%d", rng.IntN(estateKeys)), store.OpID{Client: 7, Seq: uint64(n + 1)}, fmt.Sprint("result ", n)}
		k, v := ss.Key(d.db, []byte(d.name)), m.e.thing()
		st := attempt(ss, func() store.Status {
			w := v.write()
			_, _, st := ss.Once(&k, d.id, func(*store.View, bool) store.Effect {
				return store.Effect{Write: &w, Result: []byte(d.result)}
			})
			return st
		})
		if st != store.OK {
			m.t.Fatal(st, ss.Err())
		}
		m.e.want[d.db][d.name] = v
		m.results = append(m.results, d)
	}
}

// open opens the target.
func (m *move) open() {
	m.t.Helper()
	st, err := store.Open(m.opts)
	if err != nil {
		m.t.Fatal(err)
	}
	m.st = st
}

// close closes the target.
func (m *move) close() {
	m.t.Helper()
	if err := m.st.Close(); err != nil {
		m.t.Fatal(err)
	}
}

// crash opens the target as a death of its process leaves it, in the middle of the arrival.
func (m *move) crash() {
	m.t.Helper()
	clone := m.dev.Crash()
	m.t.Cleanup(clone.Close)
	if err := m.st.CloseUnsaved(); err != nil {
		m.t.Fatal(err)
	}
	m.opts.Device, m.dev = clone, clone
	m.opts.Arriving = m.ranges
	m.open()
}

// begin begins the arrival, with the results of the source.
func (m *move) begin() {
	m.t.Helper()
	room, err := m.st.NewArrivalRoom()
	if err != nil {
		m.t.Fatal(err)
	}
	defer room.Close() // If the arrival has it, that does nothing.
	a, err := m.st.Arrive(store.ArriveOptions{Ranges: m.ranges, Ceiling: m.e.st.Ceiling(), Puller: m, Indirect: m.indirect, Room: room})
	if err != nil {
		m.t.Fatal(err)
	}
	m.a = a
	a.Hasten(m.seed%2 == 0)
	sameResults(m.t, "the source", m.e.st, m.ranges)
	var results []byte
	err = m.e.st.Completions(m.t.Context(), m.ranges, func(entry []byte) { results = append(results, entry...) })
	if err != nil {
		m.t.Fatal(err)
	}
	w, err := a.NewWorker()
	if err != nil {
		m.t.Fatal(err)
	}
	defer w.Close()
	if err := w.Import(m.t.Context(), results); err != nil {
		m.t.Fatal(err)
	}
	sameResults(m.t, "the target", m.st, m.ranges) // It may be the next source.
	m.seed++
	m.post = newMail(m.t, a, m.seed)
}

// Want is a priority pull.
func (m *move) Want(keys []store.ArrivingKey, done func(error)) {
	a, post := m.a, m.post
	post.wants.Go(func() {
		ss, err := m.e.st.NewSession()
		if err != nil {
			done(err)
			return
		}
		defer ss.Close()
		all := sync.WaitGroup{}
		cold, rest := divide(post.clerk, keys)
		if cold, err = m.readCopies(post.clerk, cold); err != nil {
			done(nil)
			return
		}
		if err := m.resolve(post.clerk, ss, cold); err != nil {
			done(nil) // It is over.
			return
		}
		for at := (store.PullCursor{}); len(rest) > 0; {
			ask := rest[:min(len(rest), store.MaxPullKeys)]
			b, unsent := m.pullKeys(ss, at, func(c store.PullCursor, emit func([]byte)) (store.Unsent, store.Status) {
				return ss.PullKeys(ask, c, 300, emit)
			})
			all.Add(1)
			if !post.send(letter{entries: b, done: all.Done}) {
				done(nil) // All came on other ways meanwhile.
				return
			}
			_, left := parted(ask, unsent)
			rest, at = append(left, rest[len(ask):]...), unsent.Next
		}
		all.Wait()
		a.Settle(keys...)
		done(nil)
	})
}

// pull makes one call of the source, which may have to read what is cold.
func (m *move) pull(ss *store.Session, c store.PullCursor, call func(store.PullCursor, func([]byte)) (store.PullCursor, store.Status)) ([]byte, store.PullCursor) {
	var b []byte
	for {
		ss.Begin()
		next, st := call(c, func(entry []byte) { b = append(b, entry...) })
		t := ss.SealRound()
		ss.End()
		if err := ss.WaitDurable(t); err != nil {
			m.t.Error(err)
		}
		switch st {
		case store.OK:
			return b, next
		case store.Cold:
			if err := ss.Fetch(context.Background()); err != nil {
				m.t.Error(err)
				return b, store.PullCursor{}
			}
			c = next
		default:
			m.t.Error(st, ss.Err())
			return b, store.PullCursor{}
		}
	}
}

// pullKeys is pull of what operations wait for.
func (m *move) pullKeys(ss *store.Session, at store.PullCursor, call func(store.PullCursor, func([]byte)) (store.Unsent, store.Status)) ([]byte, store.Unsent) {
	var unsent store.Unsent
	b, _ := m.pull(ss, at, func(c store.PullCursor, emit func([]byte)) (next store.PullCursor, st store.Status) {
		unsent, st = call(at, emit)
		return unsent.Next, st
	})
	return b, unsent
}

// divide divides keys that are wanted: of some there may be a cold record.
func divide(w *store.ImportWorker, keys []store.ArrivingKey) (cold []record.Place, rest []store.ArrivingKey) {
	for _, k := range keys {
		if w.RefersTo(k.Place) {
			cold = append(cold, k.Place)
		} else {
			rest = append(rest, k)
		}
	}
	return cold, rest
}

// parted gives those of a list that a pull gave, and those that it left.
func parted[T any](list []T, unsent store.Unsent) (given, left []T) {
	for i, one := range list {
		if unsent.Has(i) {
			left = append(left, one)
		} else {
			given = append(given, one)
		}
	}
	return given, left
}

// pullSome pulls a range, and says so if tell. It stops after some letters.
func (m *move) pullSome(r store.Range, letters int, tell bool) {
	ss, err := m.e.st.NewSession()
	if err != nil {
		m.t.Error(err)
		return
	}
	defer ss.Close()
	all := sync.WaitGroup{}
	cursor := store.PullCursor{}
	for range letters {
		var b, known []byte
		var refs []store.Indirection
		b, cursor = m.pull(ss, cursor, func(c store.PullCursor, emit func([]byte)) (store.PullCursor, store.Status) {
			o := store.PullOptions{MaxBytes: 400, Emit: emit, Known: func(p record.Place) { known = binary.LittleEndian.AppendUint64(known, uint64(p)) }}
			if m.indirect {
				o.Refer = func(i store.Indirection) { refs = append(refs, i) }
			}
			return ss.PullWith(r, c, o)
		})
		all.Add(1)
		m.post.send(letter{b, known, refs, all.Done, 0})
		if cursor == (store.PullCursor{}) {
			all.Wait()
			if tell {
				m.a.Pulled(r)
			}
			return
		}
	}
	all.Wait()
}

// partitions cuts the ranges into smaller ones.
func (m *move) partitions(rng *rand.Rand) (parts []store.Range) {
	for _, r := range m.ranges {
		for range rng.IntN(4) {
			if cut := r.First + record.Place(rng.Uint64()%max(uint64(r.Last-r.First), 1)); cut > r.First && cut <= r.Last {
				parts = append(parts, store.Range{First: r.First, Last: cut - 1})
				r.First = cut
			}
		}
		parts = append(parts, r)
	}
	return parts
}

// pullAll pulls all ranges, each partition in a goroutine of its own, up to some letters
// each.
func (m *move) pullAll(rng *rand.Rand, letters int) {
	var wg sync.WaitGroup
	for _, r := range m.partitions(rng) {
		tell := rng.IntN(2) == 0
		wg.Go(func() { m.pullSome(r, letters, tell) })
	}
	wg.Wait()
}

const everyLetter = 1 << 30

// mail delivers letters with entries, in random order, and some of them twice.
type mail struct {
	t    testing.TB
	mu   sync.Mutex
	some sync.Cond
	rng  *rand.Rand
	box  []letter
	shut bool
	wg   sync.WaitGroup

	clerk *store.ImportWorker // for what is known only
	wants sync.WaitGroup      // priority pulls under way
}

type letter struct {
	entries []byte
	known   []byte // of their places; nil if nothing is
	refs    []store.Indirection
	done    func()
	again   int
}

// newMail begins to deliver, by several workers.
func newMail(t testing.TB, a *store.Arrival, seed uint64) *mail {
	t.Helper()
	p := &mail{t: t, rng: rand.New(rand.NewPCG(seed, 99))}
	p.some.L = &p.mu
	var err error
	if p.clerk, err = a.NewWorker(); err != nil {
		t.Fatal(err)
	}
	for range 1 + p.rng.IntN(3) {
		w, err := a.NewWorker()
		if err != nil {
			t.Fatal(err)
		}
		p.wg.Go(func() {
			defer w.Close()
			p.deliver(w)
		})
	}
	return p
}

// send sends a letter; false if the mail was shut.
func (p *mail) send(l letter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return false
	}
	l.again = p.rng.IntN(3)
	p.box = append(p.box, l)
	p.some.Signal()
	return true
}

// take takes a random letter; not ok when the mail was shut and there is none.
func (p *mail) take() (l letter, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.box) == 0 {
		if p.shut {
			return l, false
		}
		p.some.Wait()
	}
	n := p.rng.IntN(len(p.box))
	l = p.box[n]
	if l.again > 0 && l.done == nil || l.again == 0 {
		p.box = slices.Delete(p.box, n, n+1)
	} else {
		p.box[n].again, p.box[n].done = l.again-1, nil
	}
	return l, true
}

func (p *mail) deliver(w *store.ImportWorker) {
	for {
		l, ok := p.take()
		if !ok {
			return
		}
		if err := w.Refer(l.refs); err != nil {
			p.t.Error(err)
		}
		if err := w.ImportKnown(p.t.Context(), l.entries, l.known); err != nil {
			p.t.Error(err)
		}
		if l.done != nil {
			l.done()
		}
	}
}

// end delivers what is left, and waits for that.
func (p *mail) end() {
	p.mu.Lock()
	p.shut = true
	p.some.Broadcast()
	p.mu.Unlock()
	p.wg.Wait()
	p.wants.Wait()
}
