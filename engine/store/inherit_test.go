package store_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/store"
)

// reign is the life of one node: a store whose log has copies elsewhere, and clients
// that wait for answers.
type reign struct {
	t       testing.TB
	opts    store.Options
	dev     *device.Memory
	copies  *hlogtest.Copies
	st      *store.Store
	ss      [3]*store.Session
	waiting map[int]waiting // by the operation's number
}

type waiting struct {
	ss     *store.Session
	ticket store.Ticket
}

func newReign(t testing.TB, o store.Options, seed uint64) *reign {
	t.Helper()
	r := &reign{t: t, opts: o, dev: device.NewMemory(), copies: hlogtest.New(t, seed), waiting: map[int]waiting{}}
	r.opts.Device, r.opts.Replicator, r.opts.Cluster = r.dev, r.copies, true
	var err error
	if r.st, err = store.Open(r.opts); err != nil {
		t.Fatal(err)
	}
	for i := range r.ss {
		if r.ss[i], err = r.st.NewSession(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// end ends it after its node was lost.
func (r *reign) end() {
	r.t.Helper()
	r.copies.Flow()
	for _, ss := range r.ss {
		ss.Close()
	}
	if err := r.st.CloseUnsaved(); err != nil {
		r.t.Fatal(err)
	}
	r.dev.Close()
}

// try makes an attempt at operation number i of a ledger.
func (r *reign) try(l *ledger, i int, ss *store.Session) (again bool) {
	r.t.Helper()
	k := ledgerKey(ss, l.ops[i])
	for {
		var st store.Status
		ss.Begin()
		_, again, st = add(ss, &k, l.ops[i])
		ticket := ss.Seal()
		ss.End()
		switch st {
		case store.OK:
			r.waiting[i] = waiting{ss, ticket}
			return again
		case store.Cold:
			if err := ss.Fetch(r.t.Context()); err != nil {
				r.t.Fatal(err)
			}
		default:
			r.t.Fatal(st, ss.Err())
		}
	}
}

// answer notes in acked what was answered by now.
func (r *reign) answer(acked map[int]bool) {
	for i, w := range r.waiting {
		if w.ss.Durable(w.ticket) {
			acked[i] = true
			delete(r.waiting, i)
		}
	}
}

// lost gives the log as its copies have it.
func (r *reign) lost() [][]byte {
	r.t.Helper()
	left, err := r.copies.Lost(r.dev, "identity.json", "tables.json")
	if err != nil {
		r.t.Fatal(err)
	}
	defer left.Close()
	o := r.opts
	o.Device, o.Replicator = left, nil
	st, err := store.Open(o) // It ends segments at the last batch that counts.
	if err != nil {
		r.t.Fatal(err)
	}
	if err := st.CloseUnsaved(); err != nil {
		r.t.Fatal(err)
	}
	return segmentsOf(r.t, left)
}

// Clients try again what was not answered when its node was lost. Whoever inherits
// its log runs what was not run, and nothing twice.
func TestEveryOperationIsRunOnceOverGenerationsOfHeirs(t *testing.T) {
	forReplicatedConfigs(t, func(t *testing.T, o store.Options) {
		seed := seedOf(t)
		rng := rand.New(rand.NewPCG(seed, 11))
		l, acked := ledger{t: t}, map[int]bool{}
		r := newReign(t, o, seed)
		var kept [][]byte // logs whose records have no copies elsewhere
		for n := range 3 + scale(12) {
			for range rng.IntN(60) {
				annoyLittle(r.copies, rng)
				l.ops = append(l.ops, store.OpID{Client: 5, Seq: uint64(len(l.ops))})
				r.try(&l, len(l.ops)-1, r.ss[rng.IntN(len(r.ss))])
				if again := rng.IntN(len(l.ops)); !r.try(&l, again, r.ss[rng.IntN(len(r.ss))]) {
					t.Fatalf("operation %d was run twice by one node", again)
				}
				if rng.IntN(4) == 0 {
					r.answer(acked)
				}
			}
			r.answer(acked)
			log := append(r.lost(), kept...)
			kept = nil
			heir := newReign(t, o, rng.Uint64())
			begin := func() *store.Importer { return importer(t, heir.st, nil) }
			if rng.IntN(2) == 0 {
				begin = func() *store.Importer { return importAside(t, heir.st) }
				kept = log
			}
			im := begin()
			if rng.IntN(2) == 0 { // Half-way its process dies, or so.
				importAll(t, im, some(log, rng), 2, rng)
				im.Abort()
				im = begin()
			}
			importAll(t, im, log, 2, rng)
			finish(t, im)
			if rng.IntN(2) == 0 {
				adopt(t, heir.st, im)
				kept = nil
			}
			l.verify(fmt.Sprintf("generation %d", n), heir.st, func(i int) bool { return acked[i] })
			r.end()
			r = heir
			for i := range l.ops {
				if !acked[i] {
					r.try(&l, i, r.ss[rng.IntN(len(r.ss))])
				}
			}
			all := func(int) bool { return true }
			l.verify(fmt.Sprintf("generation %d, all tried again", n), r.st, all)
		}
		r.end()
	})
}

// annoyLittle lets copies be late for a while.
func annoyLittle(c *hlogtest.Copies, rng *rand.Rand) {
	switch rng.IntN(8) {
	case 0:
		c.Hold()
	case 1, 2:
		c.Flow()
	}
}
