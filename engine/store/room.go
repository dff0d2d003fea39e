package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/internal/background"
)

// room is where those who want memory meet those who make some.
type room struct {
	mu       sync.Mutex
	asked    chan struct{} // kicks the maintenance
	made     chan struct{} // closed and replaced when something changed
	hopeless bool          // nothing can be freed
	given    atomic.Int64  // segments that somebody got memory for
}

func (r *room) init() {
	r.asked = make(chan struct{}, 1)
	r.made = make(chan struct{})
}

// ask kicks the maintenance.
func (r *room) ask() {
	select {
	case r.asked <- struct{}{}:
	default:
	}
}

// wake lets those who wait look again.
func (r *room) wake() { r.report(false) }

// report tells those who wait whether there is hope.
func (r *room) report(hopeless bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hopeless = hopeless
	close(r.made)
	r.made = make(chan struct{})
}

// nudge lets those who wait look again, for a segment is ready.
func (r *room) nudge() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.made)
	r.made = make(chan struct{})
}

func (r *room) watch() (changed <-chan struct{}, hopeless bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.made, r.hopeless
}

// maxResident is how many segments may hold memory.
func (st *Store) maxResident() int64 {
	limit := st.limit.Load()
	if limit == 0 {
		return 1 << 40
	}
	least := int64(2*st.opts.Heads + 6 + st.log.Overhead() + st.log.OpenSides()) // open ones, spares, and some to choose from
	return max((limit-st.ix.Bytes()-st.arriving.bytes())/int64(st.opts.SegmentBytes), least)
}

// slack is how many segments the maintenance tries to keep free.
func (st *Store) slack() int64 { return max(2, st.maxResident()/20) }

// pressed tells whether memory is getting short.
func (st *Store) pressed() bool { return st.log.Resident() > st.maxResident()-st.slack() }

// busy tells whether what keeps the log in order is to wait, for somebody waits for an import. An arrival may take as long
// as its source likes: it has that only while nobody waits for other side segments, such as those of an heir, and while
// there is plenty of memory, where all of them are until they are part of the log. Copies of what
// another owns are no reason at all.
func (st *Store) busy() bool {
	return st.imports.own() || st.arriving.hasty() && !st.log.SidesAwaited() && st.log.Resident() < st.maxResident()/4*3
}

// takeRoom gets memory for one more segment. The background may wait for it;
// sessions may not, for their guards would keep memory from coming free.
func (st *Store) takeRoom(wait bool) error {
	for {
		changed, hopeless := st.room.watch()
		if used := st.log.Resident(); used < st.maxResident() {
			if used > st.maxResident()/2 {
				st.room.ask() // In good time, for a cache marks what it will forget.
			}
			st.room.given.Add(1)
			return nil
		}
		st.room.ask()
		switch {
		case hopeless:
			return ErrMemoryFull
		case !wait:
			return hlog.ErrNoRoom
		}
		select {
		case <-changed:
		case <-st.done:
			return ErrClosed
		}
	}
}

// awaitRoom waits until a write may find room, or may learn that there is none. If
// segments must be open elsewhere, as many are to be ready. Who has gone does not wait.
func (st *Store) awaitRoom(n int, gone <-chan struct{}) {
	for {
		changed, hopeless := st.room.watch()
		elsewhere := st.opts.Replicator != nil // Segments are made by others then, who tell when they cannot.
		if hopeless && st.log.HasReserve() || st.roomReady(n) || elsewhere && st.log.Shortage() != nil || st.log.Err() != nil {
			return
		}
		var soon <-chan time.Time
		if !elsewhere { // A spare may become ready, or may be made by whoever needs it.
			if st.log.Resident() < st.maxResident() {
				return
			}
			soon = time.After(time.Millisecond)
		}
		if !elsewhere || st.pressed() { // Else only a segment that is opened elsewhere helps.
			st.room.ask()
		}
		select {
		case <-changed:
		case <-soon:
		case <-gone:
			return
		case <-st.done:
			return
		}
	}
}

// roomReady tells whether segments are ready: one, if more can be made at once.
func (st *Store) roomReady(n int) bool {
	if st.opts.Replicator == nil {
		n = 1
	}
	return st.log.Spares() >= n
}

// maintainEvery is how long garbage may wait when nobody asks for room.
const maintainEvery = 100 * time.Millisecond

// maintain frees memory when it is short, and cleans what is mostly dead. Its
// thread is as good as any other: writers wait for the memory it frees.
func (st *Store) maintain(ctx context.Context) {
	every(ctx, maintainEvery, st.room.asked, func() {
		st.epoch.Drain()
		st.buryCondemned()
		st.dropDead(ctx)
		st.age()
		st.relieve(ctx)
		st.tidy(ctx)
		st.outlive(ctx)
	})
}

// relieve frees memory until there is slack, or nothing more can be freed.
//
// Whether memory is on its way back is asked before some is freed: what arrives
// in between could have been freed, and must not be taken for nothing.
func (st *Store) relieve(ctx context.Context) {
	for st.pressed() && ctx.Err() == nil {
		before, lagging, freeing := st.log.Resident(), st.lagging(), st.freeing()
		if !st.freeSome() && !freeing && !st.freeing() {
			if !lagging && !st.lagging() {
				st.room.report(true)
			}
			return
		}
		st.settleFrees(ctx, before)
		st.room.wake()
	}
	st.room.wake()
}

// freeing tells whether memory may be on its way back.
func (st *Store) freeing() bool { return st.epoch.Pending() != 0 || !st.log.Idle() }

// lagging tells whether memory will come back when copies elsewhere are made.
func (st *Store) lagging() bool {
	if st.opts.Replicator == nil || st.log.Err() != nil {
		return false
	}
	for _, s := range st.log.Segments() {
		if s.Closed() && st.log.InMemory(s) && !st.log.AtRest(s) {
			return true
		}
	}
	return !st.log.HasReserve()
}

// reservePatience is how long the cleaner waits for room elsewhere. Others need
// the maintenance, too.
const reservePatience = time.Second

// awaitReserve waits until what must be written to make room can be; false if
// that takes too long.
func (st *Store) awaitReserve() bool {
	late := time.NewTimer(reservePatience)
	defer late.Stop()
	for {
		changed, _ := st.room.watch()
		if st.log.HasReserve() {
			return true
		}
		select {
		case <-changed:
		case <-late.C:
			return false
		case <-st.leaving:
			return false
		}
	}
}

// settleFrees waits until freed memory has come back: guards have to pass.
func (st *Store) settleFrees(ctx context.Context, before int64) {
	for range 200 {
		st.epoch.Drain()
		if st.log.Resident() < before || ctx.Err() != nil || !st.freeing() {
			return
		}
		background.Pause(ctx, 200*time.Microsecond)
	}
}
