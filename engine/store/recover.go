package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// RecoveryError names the segment that keeps a store from opening.
type RecoveryError struct {
	Segment record.SegmentID
	Err     error
}

func (e *RecoveryError) Error() string {
	return fmt.Sprintf("segment %d cannot be recovered: %v; run 'ostro check' on the data directory, restore the segment from a copy, or set it aside with 'ostro check --repair --quarantine' and lose what only it holds", e.Segment, e.Err)
}

func (e *RecoveryError) Unwrap() error { return e.Err }

// recover replays the segments on the device, in parallel and in any order:
// of each key the highest version wins.
func (st *Store) recover(ctx context.Context) (err error) {
	if st.dev == nil {
		return nil
	}
	began := time.Now()
	if err := st.restore(ctx); err != nil {
		return err
	}
	found, err := hlog.Find(st.dev, st.opts.SegmentBytes)
	if err != nil {
		return err
	}
	all := slices.Clone(found)
	defer func() {
		if err != nil {
			hlog.CloseAll(all)
		}
	}()
	if found, err = st.keepCheckpointed(found); err != nil {
		return err
	}
	frames := st.maxResident() - st.slack()
	if found, err = st.loadSnapshot(found, frames); err != nil {
		return err
	}
	r := replay{st: st, total: int64(len(found)), frames: frames}
	if err := r.run(found); err != nil {
		return err
	}
	st.markRemote()
	if err := st.afterRecovery(); err != nil {
		return err
	}
	st.recoveryMillis = time.Since(began).Milliseconds()
	return nil
}

// replay is the recovery of one store. Segments that were closed come first:
// the log must know all of them to tell which batches of the others count.
type replay struct {
	st     *Store
	total  int64
	frames int64 // how many segments fit in memory
	mu     sync.Mutex
	done   int64
	errs   []error
	mapped []*hlog.Segment // to leave memory when all is replayed
}

func (r *replay) run(found []hlog.Found) error {
	r.st.opts.Progress(Progress{Stage: "recovery", Total: r.total, Unit: "segments"})
	closed, tails := divide(found)
	parts := make([]deferred, r.st.opts.Heads+1)
	if err := r.all(closed, r.frames-int64(len(tails)), parts); err != nil {
		return err
	}
	tails, err := r.st.log.Resume(tails)
	if err != nil {
		return err
	}
	if err := r.all(tails, r.frames, parts); err != nil {
		return err
	}
	if err := r.st.finishReplay(parts); err != nil {
		return err
	}
	r.st.keeper.Begin()
	for _, s := range r.mapped {
		r.st.log.Evict(s)
	}
	r.st.keeper.End()
	r.st.epoch.Drain()
	return nil
}

// divide tells segments that were closed from those that were not.
func divide(found []hlog.Found) (closed, tails []hlog.Found) {
	for _, f := range found {
		if f.Closed {
			closed = append(closed, f)
		} else {
			tails = append(tails, f)
		}
	}
	return closed, tails
}

// all replays segments in parallel, as many of them into memory as it has frames.
func (r *replay) all(found []hlog.Found, frames int64, parts []deferred) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range min(len(parts), len(found)) {
		ss, err := r.st.NewSession()
		if err != nil {
			return err
		}
		defer ss.Close()
		wg.Go(func() { r.work(ss, found, &next, frames, &parts[w]) })
	}
	wg.Wait()
	return errors.Join(r.errs...)
}

// work replays segments, the newest first: those are to be in memory, and
// fewer entries are replaced that way.
func (r *replay) work(ss *Session, found []hlog.Found, next *atomic.Int64, frames int64, later *deferred) {
	for {
		n := next.Add(1) - 1
		if n >= int64(len(found)) || r.failed() {
			return
		}
		f := found[int64(len(found))-1-n]
		if err := r.segment(ss, f, n < frames, later); err != nil {
			if !errors.Is(err, ErrIndexFull) { // That is not the segment's fault.
				err = &RecoveryError{f.ID, err}
			}
			r.fail(err)
			return
		}
		r.tell()
	}
}

// tell counts a segment that was replayed. Who is told hears of one after the other.
func (r *replay) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.st.opts.Progress(Progress{Stage: "recovery", Done: r.done, Total: r.total, Unit: "segments"})
}

func (r *replay) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.errs) > 0
}

func (r *replay) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

// segment replays one segment.
func (r *replay) segment(ss *Session, f hlog.Found, inFrame bool, later *deferred) error {
	s, err := r.st.log.Adopt(f, inFrame)
	if err != nil {
		return err
	}
	if !inFrame {
		r.mu.Lock()
		r.mapped = append(r.mapped, s)
		r.mu.Unlock()
	}
	ss.Begin()
	defer ss.End()
	counts := r.st.counting(s.ID, r.st.log.Bytes(s))
	for off, p := range record.Entries(r.st.log.Bytes(s)) {
		a := record.MakeAddress(s.Slot, off)
		if !counts(off, p) {
			ss.head.Died(a, uint32(p.Length()))
			continue
		}
		switch p.Type() {
		case record.TypeTombstone:
			s.Tombstones.Add(int64(p.Length()))
			if ss.replay(a, p) {
				later.tombs = append(later.tombs, buried{placeOf(p), a, p.Version()})
			}
		case record.TypePut:
			ss.replayPut(a, p, later)
		case record.TypeCompletion:
			if ss.replay(a, p) {
				r.st.noteForeign(p, ss.now)
			}
		default:
			ss.head.Died(a, uint32(p.Length()))
		}
		if ss.err != nil {
			return ss.err
		}
	}
	return nil
}

// replayPut replays a record, or puts it off if it is the front of a large
// value.
func (ss *Session) replayPut(a record.Address, p record.Ptr, later *deferred) {
	if p.Chunked() {
		later.large = append(later.large, a)
		return
	}
	if ss.replay(a, p) && p.Table() == chunkTable {
		later.chunks = append(later.chunks, a)
	}
}

// replay brings one entry into the index, unless a higher version of its key
// is there. What keeps it from that is left in ss.err.
func (ss *Session) replay(a record.Address, p record.Ptr) bool {
	t := ss.st.tables.byID(p.Table())
	ss.st.raiseCeiling(versionOf(p))
	if p.Table() == chunkTable {
		t = &noTable
		ss.st.noteChunk(p)
	}
	if t == nil {
		ss.head.Died(a, uint32(p.Length()))
		return false
	}
	k := Key{Place: placeOf(p), Table: p.Table(), Bytes: p.Key(), in: t}
	for {
		var pr index.Probe
		old, st := ss.find(&k, &pr)
		if st == Cold {
			ss.fetchNow(&k)
			continue
		}
		if st == NotFound {
			switch ss.st.ix.Insert(&pr, a) {
			case index.Inserted:
				t.count(ss.n, worthOf(p))
				return true
			case index.Full:
				ss.fail(ErrIndexFull)
				return false
			}
			continue
		}
		if old.Version() >= p.Version() {
			ss.diedUnlessTombstone(a, p)
			return false
		}
		at := pr.Address()
		if ss.st.ix.Update(&pr, a) {
			ss.diedUnlessTombstone(at, old)
			t.count(ss.n, worthOf(p).minus(worthOf(old)))
			return true
		}
	}
}

// fetchNow reads what find needs. A record of the base that cannot be read is
// no reason to lose the tail's; the error shows when it is asked for. k is the
// key to be replayed, if any.
func (ss *Session) fetchNow(k *Key) {
	for _, w := range ss.cold {
		b, err := ss.st.log.Fetch(w.at, w.segment)
		if err != nil {
			ss.st.opts.Logger.Error("a cold record cannot be read", "address", w.at, "error", err)
			b = ss.standIn(k, w.at) // Or it would be asked for again and again.
		}
		if ss.stash == nil || len(ss.stash) > 1024 {
			ss.stash = map[record.Address]fetched{}
		}
		ss.stash[w.at] = fetched{w.segment, b}
	}
	ss.cold = ss.cold[:0]
}

// standIn stands for the record at a, which cannot be read. If all that the
// index knows of its place is k's, it is the record that k had before the tail:
// the tail's must replace it, for a key has one entry. Else it is no key's.
func (ss *Session) standIn(k *Key, a record.Address) []byte {
	table, key := chunkTable, []byte{0}
	var pr index.Probe
	if k != nil && isAt(ss.st.ix, k.Place, a, &pr) && pr.SamePlace() {
		table, key = k.Table, k.Bytes
	}
	b := make([]byte, record.Size(len(key), 0, false))
	record.Encode(b, &record.Header{Type: record.TypePut, Table: table}, key, nil, true)
	return b
}

// diedUnlessTombstone counts a replaced entry as dead. Tombstones count as
// alive until the cleaner finds that they are not needed.
func (ss *Session) diedUnlessTombstone(a record.Address, p record.Ptr) {
	if p.Type() != record.TypeTombstone {
		ss.head.Died(a, uint32(p.Length()))
	}
}

// noteChunk keeps new chunks from getting the ids of old ones.
func (st *Store) noteChunk(p record.Ptr) {
	if of, ok := chunkOf(p.Key()); ok && of.log == st.opts.LogID {
		st.raiseChunkIDs(of.id)
	}
}

// skipChunkIDs has this life name large values otherwise than those before, also those of which its log has nothing that counts: they may
// be other nodes' now, and come back. What a life writes is in segments from its first one on, so the next life's first one has a higher id.
func (st *Store) skipChunkIDs() { st.raiseChunkIDs(uint64(st.log.NextID()) << 32) }

func (st *Store) raiseChunkIDs(id uint64) {
	for old := st.chunkIDs.Load(); old < id; old = st.chunkIDs.Load() {
		if st.chunkIDs.CompareAndSwap(old, id) {
			return
		}
	}
}
