package store

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ostrodb/ostro/engine/epoch"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// Session is one worker's access to the store. It is not for concurrent use.
// Operations run between Begin and End, and none of them waits for I/O.
type Session struct {
	st     *Store
	ix     *index.Index // of st, as log is: one step less on the way to a record
	log    *hlog.Log
	root   *uint64        // of ix
	slots  unsafe.Pointer // of log
	tables *tables
	n      int
	guard  *epoch.Guard
	head   *hlog.Head
	now    int64
	err    error
	payer  *Payer // for what is kept of operations
	usual  int    // bytes of the last record that a batch read
	old    View   // what RMW shows; here, so that it need not be allocated

	arena      arena          // copies that views point to, until End
	need       record.BatchID // must be durable before replies go out; see Ticket
	leanings   uint64         // how often need has grown by what was read
	sealed     uint64         // where the head was at the last Seal
	tx         txn            // the open transaction
	cold       []wanted
	asked      []asked // of places that arrive
	pulling    *pulling
	stash      map[record.Address]fetched
	looked     int      // records that scans have looked at
	met        int      // candidates that the last search has met
	fresh      bool     // the stash is for the next round
	noRoom     bool     // a write waits for memory
	roomWanted int      // segments that it needs, if it knows
	stat       counters // plain numbers of this round; published by End
	wait       atomic.Bool

	past    atomic.Uint64 // the highest batch of its tickets
	waitFor atomic.Uint64 // the batch that the session waits for; see await

	chunking atomic.Uint64 // id of the first large value that is being written; 0 if none is

	waitOnce sync.Once
	moved    chan struct{}
	gone     chan struct{} // closed by GiveUp
	goOnce   sync.Once
	onClose  []func()

	attendant attendant
}

// NewSession gives a worker its session.
func (st *Store) NewSession() (*Session, error) {
	if st.closed.Load() {
		return nil, ErrClosed
	}
	g, err := st.epoch.Register()
	if err != nil {
		return nil, err
	}
	n := int(st.sessions.Add(1) - 1)
	ss := &Session{
		st: st, ix: st.ix, log: st.log, root: st.ix.Root(), slots: st.log.Slots(), tables: &st.tables,
		n: n, guard: g, head: st.log.Head(n), now: st.opts.Now(), gone: make(chan struct{}),
	}
	ss.attendant.begin(ss)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.open[ss] = struct{}{}
	return ss, nil
}

// Close ends the session.
func (ss *Session) Close() {
	for _, f := range ss.onClose {
		f()
	}
	ss.onClose = nil
	ss.arrived()
	st := ss.st
	st.mu.Lock()
	defer st.mu.Unlock()
	if _, ok := st.open[ss]; !ok {
		return
	}
	delete(st.open, ss)
	st.past.add(&ss.stat)
	ss.guard.Unregister()
}

// Begin starts a round of operations. Views stay valid until End.
func (ss *Session) Begin() {
	ss.now = ss.st.opts.Now()
	ss.forgetStash()
	ss.cold, ss.noRoom, ss.roomWanted = ss.cold[:0], false, 0
	if ss.asked != nil {
		ss.asked = nil
	}
	ss.guard.Enter()
}

// End ends the round.
func (ss *Session) End() {
	ss.guard.Leave()
	ss.arena.reset()
	ss.stat.publish()
}

// find looks k up. With OK, pr stands on its entry and p is it. With NotFound,
// pr is ready to insert. With Cold, an entry that may be k's is not in memory.
func (ss *Session) find(k *Key, pr *index.Probe) (p record.Ptr, st Status) {
	for round := 0; ; round++ {
		ss.st.ix.Seek(k.Place, pr)
		if p, st := ss.match(k, pr, reading); st != Conflict {
			return p, st
		}
		yield(round)
	}
}

// reading is what match is told by those who lock nothing.
const reading = -1

// match goes through the candidates of a sought probe. Conflict asks for
// another Seek: a transaction holds an entry that may be k's. held is how many
// keys the session's transaction has locked on its way to k, or reading.
func (ss *Session) match(k *Key, pr *index.Probe, held int) (record.Ptr, Status) {
	none := NotFound
	ss.met = 0
	for pr.Next() {
		ss.met++
		if pr.Locked() {
			switch ss.meetLock(pr, held) {
			case Conflict:
				return record.Ptr{}, Conflict
			case NotFound:
				continue
			}
		}
		a := pr.Address()
		p, ok := ss.entry(a)
		if !ok {
			ss.want(a)
			none = Cold
			continue
		}
		if p.KeyIs(k.Table, k.Bytes) {
			return p, OK
		}
	}
	return record.Ptr{}, none
}

// meetLock tells what to do about an entry that a transaction holds: to wait for
// its end (Conflict), to step over it (NotFound), or to look at it (OK).
func (ss *Session) meetLock(pr *index.Probe, held int) Status {
	switch {
	case held != reading && ss.holds(pr, held):
		return NotFound // Our keys differ from each other, so it is not this one's.
	case held != reading || !ss.tx.open:
		return Conflict
	case pr.Address() == 0:
		return NotFound
	default:
		return OK // It may be our own; another's still shows what was before it.
	}
}

// entry gives the entry at a from memory, or from what was fetched for this run.
func (ss *Session) entry(a record.Address) (record.Ptr, bool) {
	if p, ok := ss.st.log.Entry(a); ok {
		return p, true
	}
	return ss.stashed(a)
}

// yield lets others go on in a loop that waits for one of them.
func yield(round int) {
	if round > 8 {
		runtime.Gosched()
	}
}

// expired tells whether the record's time is over.
func (ss *Session) expired(p record.Ptr) bool {
	return p.HasExpiry() && p.ExpireAt() <= ss.now
}

// arena hands out memory for copies that live until the end of a round.
type arena struct {
	slab []byte
	used int
}

func (a *arena) alloc(n int) []byte {
	if a.used+n > len(a.slab) {
		a.slab = make([]byte, max(2*len(a.slab), n, 4096))
		a.used = 0
	}
	b := a.slab[a.used : a.used+n : a.used+n]
	a.used += n
	return b
}

// keep copies b.
func (a *arena) keep(b []byte) []byte {
	c := a.alloc(len(b))
	copy(c, b)
	return c
}

// arenaKeepBytes bounds what an arena keeps for the next round.
const arenaKeepBytes = 1 << 20

func (a *arena) reset() {
	a.used = 0
	if len(a.slab) > arenaKeepBytes {
		a.slab = nil
	}
}
