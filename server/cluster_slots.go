package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

const (
	// slotBatch is how many slots that clients move one by one go in one migration.
	slotBatch = 256
	// slotPause is how long a batch waits for the next slot.
	slotPause = 150 * time.Millisecond
	// slotRow is how soon a slot must follow another for both to count as one row of them.
	slotRow = time.Second
	// slotPatience is how long a client waits for a slot. The migration goes on afterwards.
	slotPatience = time.Minute
	// slotDoubt is when a node that is not the target, and was told of a slot's new owner, looks whether
	// it came so. Redis' tools tell all nodes, the target first; who tells only others gets what they asked for, later.
	slotDoubt = 3 * time.Second
)

// slotMover moves slots that Redis' tools move one by one: as migrations, each of many slots. The first
// slot of a row goes at once and its client waits for it; those that follow are gathered, and
// only the one that makes a batch full waits until it has gone.
type slotMover struct {
	self  view.NodeID
	meta  *meta.Store
	cache *meta.Cache
	log   *slog.Logger
	ctx   context.Context // ends with the node

	mu    sync.Mutex
	rows  map[view.NodeID]*slotRowOf // by target
	tasks sync.WaitGroup
}

// slotRowOf is a row of slots to one target.
type slotRowOf struct {
	slots map[uint16]bool
	last  time.Time   // when one came
	timer *time.Timer // sends what was gathered
}

// MoveSlot sees to it that a slot goes to a node; see redis.Mover.
func (m *slotMover) MoveSlot(slot uint16, to view.NodeID, wait bool, done func(error)) {
	if !wait && to != m.self {
		told := m.cache.Snapshot()
		m.later(slotDoubt, func() { m.doubt(slot, to, told) })
		done(nil)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.row(to)
	inRow := time.Since(r.last) < slotRow
	r.last = time.Now()
	r.slots[slot] = true
	if inRow && !wait && len(r.slots) < slotBatch {
		r.timer.Reset(slotPause)
		done(nil)
		return
	}
	slots := r.take()
	m.tasks.Go(func() { m.send(to, slots, done) })
}

func (m *slotMover) row(to view.NodeID) *slotRowOf {
	if m.rows == nil {
		m.rows = map[view.NodeID]*slotRowOf{}
	}
	r := m.rows[to]
	if r == nil {
		r = &slotRowOf{slots: map[uint16]bool{}}
		r.timer = time.AfterFunc(time.Hour, func() { m.rest(to) })
		r.timer.Stop()
		m.rows[to] = r
	}
	return r
}

// take returns what was gathered. The caller holds mu.
func (r *slotRowOf) take() map[uint16]bool {
	slots := r.slots
	r.slots = map[uint16]bool{}
	r.timer.Stop()
	return slots
}

// rest sends what was gathered when no more came.
func (m *slotMover) rest(to view.NodeID) {
	m.mu.Lock()
	slots := m.rows[to].take()
	m.mu.Unlock()
	if len(slots) > 0 && m.ctx.Err() == nil {
		m.send(to, slots, func(err error) {
			if err != nil {
				m.log.Warn("slots that a client moved did not move", "slots", len(slots), "to", string(to), "why", err)
			}
		})
	}
}

// later runs f in a while, unless the node stops before.
func (m *slotMover) later(d time.Duration, f func()) {
	m.tasks.Go(func() {
		select {
		case <-m.ctx.Done():
		case <-time.After(d):
			f()
		}
	})
}

// doubt moves a slot of whose new owner this node was told a while ago, if nothing has happened to it since.
func (m *slotMover) doubt(slot uint16, to view.NodeID, told *meta.Snapshot) {
	ranges := view.RangesOf(view.SlotsRange(slot, slot))
	for _, mig := range m.cache.Snapshot().AllMigrations() {
		_, old := told.Migrations[mig.ID]
		if len(mig.Ranges.Intersect(ranges)) > 0 && (!old || !told.Migrations[mig.ID].Stage.Ended()) {
			return
		}
	}
	if len(missing(m.cache.Snapshot(), to, ranges)) > 0 {
		m.send(to, map[uint16]bool{slot: true}, func(err error) {
			if err != nil {
				m.log.Warn("a slot that a client moved did not move", "slot", slot, "to", string(to), "why", err)
			}
		})
	}
}

// send moves slots and tells when they are the target's.
func (m *slotMover) send(to view.NodeID, slots map[uint16]bool, done func(error)) {
	ctx, cancel := context.WithTimeout(m.ctx, slotPatience)
	defer cancel()
	err := m.moveAll(ctx, to, slotRanges(slots))
	if err != nil && ctx.Err() != nil {
		err = errors.New("it takes longer than a minute and goes on; `ostro migrate list` tells how far it is")
	}
	done(err)
}

func slotRanges(slots map[uint16]bool) view.Ranges {
	var all []view.Range
	for s := range slots {
		all = append(all, view.SlotsRange(s, s))
	}
	return view.RangesOf(all...)
}

// moveAll asks for migrations of all that is not the target's or on its way there, and waits until all is.
func (m *slotMover) moveAll(ctx context.Context, to view.NodeID, ranges view.Ranges) error {
	s, err := m.meta.Read(ctx)
	if err != nil {
		return err
	}
	left := missing(s, to, ranges)
	var asked []uint64
	for _, from := range s.Map.Owners() {
		part := left.Intersect(s.Map.Ranges(from))
		if from == to || len(part) == 0 {
			continue
		}
		mig, err := m.meta.Migrate(ctx, meta.MigrationRequest{
			Source: from, Target: to, Ranges: part, Options: meta.MigrationOptions{Sample: true}, Why: "a Redis client moves slots",
		})
		if err != nil {
			return err
		}
		asked = append(asked, mig.ID)
	}
	_, err = m.cache.Wait(ctx, func(s *meta.Snapshot) bool {
		return s.Map.Ranges(to).Covers(ranges) || ended(s, asked) != nil
	})
	if err != nil {
		return err
	}
	return ended(m.cache.Snapshot(), asked)
}

// missing is what of ranges is neither a node's nor on its way there.
func missing(s *meta.Snapshot, to view.NodeID, ranges view.Ranges) view.Ranges {
	left := ranges.Subtract(s.Map.Ranges(to))
	for _, mig := range s.Open(to) {
		if mig.Target == to {
			left = left.Subtract(mig.Ranges)
		}
	}
	return left
}

// ended says why one of the migrations did not bring what was asked for.
func ended(s *meta.Snapshot, ids []uint64) error {
	for _, id := range ids {
		if mig, known := s.Migrations[id]; known && (mig.Stage == meta.Failed || mig.Stage == meta.Cancelled) {
			return fmt.Errorf("migration %d is %s: %s", id, mig.Stage, mig.Why)
		}
	}
	return nil
}
