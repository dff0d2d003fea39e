package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// fetched is a cold record that was read for a command, and the segment it
// came from: an address alone may mean another record later.
type fetched struct {
	segment record.SegmentID
	bytes   []byte
}

// wanted is a cold record that an operation needs, and the segment that it is
// in: when it is read, its address may be another segment's.
type wanted struct {
	at      record.Address
	segment record.SegmentID
}

// want notes that the cold record at a is needed. A segment that is gone by now
// is asked for, too: to find that out is what the operation waits for then.
func (ss *Session) want(a record.Address) {
	w := wanted{at: a}
	if s := ss.st.log.Segment(a.Slot()); s != nil {
		w.segment = s.ID
	}
	ss.cold = append(ss.cold, w)
}

// Fetch is the I/O that an operation with status Cold waits for: reads of what is cold, room
// for what is written, records that are to arrive. Start it,
// then Resume the session with it and run the operation again from its start.
type Fetch struct {
	st   *Store
	from *Session
	want []wanted
	room int // segments that are wanted for writes
	asks []*askedOf
	left atomic.Int64

	patience time.Duration // see Patience

	mu   sync.Mutex
	got  map[record.Address]fetched
	err  error
	done func()
}

// GiveUp ends what fetches of the session wait for and may never come: room for writes, which copies elsewhere must be opened for, and
// records that are to arrive. It is for who stops and runs their operations no more, and may be called at any time by anybody.
func (ss *Session) GiveUp() {
	ss.goOnce.Do(func() {
		close(ss.gone)
		ss.st.arriving.lookAll()
	})
}

// TakeFetch gives what the Cold operations since Begin, or since the last
// TakeFetch, need.
func (ss *Session) TakeFetch() *Fetch {
	slices.SortFunc(ss.cold, func(a, b wanted) int { return cmp.Compare(a.at, b.at) })
	f := &Fetch{st: ss.st, from: ss, want: slices.Clone(slices.Compact(ss.cold)), got: make(map[record.Address]fetched, len(ss.cold))}
	maps.Copy(f.got, ss.stash) // Or the operation would go back and forth between two records.
	if ss.noRoom {
		f.room = max(ss.roomWanted, 1)
	}
	if len(ss.asked) > 0 {
		f.asks = ss.takeAsked()
	}
	ss.cold, ss.noRoom, ss.roomWanted = ss.cold[:0], false, 0
	ss.stat.cold += int64(len(f.want))
	return f
}

// Patience bounds the wait for the end of a return: after it the fetch fails with ErrReturning. All else that a fetch waits for ends, or
// becomes such a wait. It is to be called before Start; without it there is no bound.
func (f *Fetch) Patience(d time.Duration) { f.patience = d }

// Start begins the I/O. done is called once, when all of it has ended, by whoever brought the last of it: it must not wait. That may be
// before Start returns, if nothing was left to bring.
func (f *Fetch) Start(done func()) {
	f.done = done
	f.left.Store(int64(len(f.want)+len(f.asks)) + 1)
	for _, q := range f.asks {
		q.start(f.patience, f.asked)
	}
	for _, w := range f.want {
		f.st.readers.do(func() { f.read(w) })
	}
	if f.room == 0 {
		f.arrived()
		return
	}
	go func() {
		f.st.awaitRoom(f.room, f.from.gone)
		f.arrived()
	}()
}

// arrived counts one part of the I/O as done.
func (f *Fetch) arrived() {
	if f.left.Add(-1) == 0 {
		f.done()
	}
}

func (f *Fetch) read(w wanted) {
	b, err := f.st.log.Fetch(w.at, w.segment)
	f.mu.Lock()
	switch {
	case err == nil:
		f.got[w.at] = fetched{w.segment, b}
	case !errors.Is(err, hlog.ErrGone): // Cleaned away meanwhile: the operation finds it elsewhere.
		f.err = errors.Join(f.err, err)
	}
	f.mu.Unlock()
	f.arrived()
}

// asked ends the wait for what arrives.
func (f *Fetch) asked(err error) {
	f.mu.Lock()
	f.err = errors.Join(f.err, err)
	f.mu.Unlock()
	f.arrived()
}

// Err tells what went wrong.
func (f *Fetch) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Release forgets what was fetched.
func (f *Fetch) Release() { f.got = nil }

// Resume lets the session's operations of this round, or the next if none has
// begun, see what f fetched.
func (ss *Session) Resume(f *Fetch) {
	ss.stash = nil
	if f != nil {
		ss.stash, ss.fresh = f.got, !ss.guard.Inside()
		ss.need = max(ss.need, record.BatchID(f.from.past.Load())) // What the operation did before it was Cold counts.
	}
}

// forgetStash drops what was fetched for an earlier round.
func (ss *Session) forgetStash() {
	if !ss.fresh {
		ss.stash = nil
	}
	ss.fresh = false
}

// stashed gives the entry at a if it was fetched and is still the same.
func (ss *Session) stashed(a record.Address) (record.Ptr, bool) {
	if len(ss.stash) == 0 {
		return record.Ptr{}, false
	}
	got, ok := ss.stash[a]
	if !ok {
		return record.Ptr{}, false
	}
	if s := ss.st.log.Segment(a.Slot()); s == nil || s.ID != got.segment {
		return record.Ptr{}, false
	}
	return record.PtrOf(got.bytes), true
}

// Fetch waits for what the last operations need and resumes the session with
// it. Call it outside of Begin and End, then run the operation again.
func (ss *Session) Fetch(ctx context.Context) error { return ss.fetchWithin(ctx, 0) }

// fetchWithin is Fetch with Patience.
func (ss *Session) fetchWithin(ctx context.Context, most time.Duration) error {
	f := ss.TakeFetch()
	f.Patience(most)
	done := make(chan struct{})
	f.Start(func() { close(done) })
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	ss.Resume(f)
	return f.Err()
}

// readers is a pool of goroutines that wait for disks.
type readers struct {
	tokens chan struct{}
}

func newReaders(n int) readers { return readers{tokens: make(chan struct{}, n)} }

// do runs f in the background; at most as many at once as there are tokens.
func (r readers) do(f func()) {
	go func() {
		r.tokens <- struct{}{}
		defer func() { <-r.tokens }()
		f()
	}()
}
