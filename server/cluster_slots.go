package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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
	// slotAge is how long the first slot of a batch waits for others, however soon they follow each other.
	slotAge = 2 * time.Second
	// slotPatience is how long a client waits for a slot. The migration goes on afterwards.
	slotPatience = time.Minute
	// slotDoubt is when a node that is not the target, and was told of a slot's new owner, looks whether
	// it came so: after that time, or twice of it. Redis' tools tell all nodes, the target first; who tells only others gets what
	// they asked for, later.
	slotDoubt = 5 * time.Second
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
	heard map[view.NodeID]*heardOf   // likewise
	tasks sync.WaitGroup
}

// slotRowOf is a row of slots to one target.
type slotRowOf struct {
	slots map[uint16]bool
	first time.Time   // when the first of them came
	last  time.Time   // when one came
	timer *time.Timer // sends what was gathered
}

// heardOf is slots of which this node was told that another one has them now, each with what was known then.
type heardOf struct{ older, newer map[uint16]*meta.Snapshot }

// MoveSlot sees to it that a slot goes to a node; see redis.Mover.
func (m *slotMover) MoveSlot(slot uint16, to view.NodeID, wait bool, done func(error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !wait && to != m.self {
		m.hear(slot, to)
		done(nil)
		return
	}
	r := m.row(to)
	now := time.Now()
	inRow := now.Sub(r.last) < slotRow
	r.last = now
	if len(r.slots) == 0 {
		r.first = now
	}
	r.slots[slot] = true
	if inRow && !wait && len(r.slots) < slotBatch && now.Sub(r.first) < slotAge {
		r.timer.Reset(slotPause)
		done(nil)
		return
	}
	slots := r.take()
	m.tasks.Go(func() {
		m.send(to, slots, func(err error) {
			m.mu.Lock()
			r.last = time.Now() // The next can only follow from here on.
			m.mu.Unlock()
			done(err)
		})
	})
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
		m.sendOrWarn(to, slots)
	}
}

// hear notes a slot of whose new owner this node was told. All that are not there in a while go together: one migration for each would
// keep the cluster busy with them. The caller holds mu.
func (m *slotMover) hear(slot uint16, to view.NodeID) {
	if m.heard == nil {
		m.heard = map[view.NodeID]*heardOf{}
	}
	h := m.heard[to]
	if h == nil {
		h = &heardOf{older: map[uint16]*meta.Snapshot{}, newer: map[uint16]*meta.Snapshot{}}
		m.heard[to] = h
		m.tasks.Go(func() { m.doubtAll(to) })
	}
	h.newer[slot] = m.cache.Snapshot()
}

// doubtAll looks every now and then after what was heard of slots, until nothing is left or the node stops.
func (m *slotMover) doubtAll(to view.NodeID) {
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-time.After(slotDoubt):
		}
		m.mu.Lock()
		h := m.heard[to]
		due := h.older
		h.older, h.newer = h.newer, map[uint16]*meta.Snapshot{}
		if len(due) == 0 && len(h.older) == 0 {
			delete(m.heard, to)
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
		m.tasks.Go(func() { m.doubt(to, due) })
	}
}

// doubt moves slots of whose new owner this node was told a while ago, and to which nothing has happened since.
func (m *slotMover) doubt(to view.NodeID, told map[uint16]*meta.Snapshot) {
	now, left := m.cache.Snapshot(), map[uint16]bool{}
	for slot := range told {
		left[slot] = true
	}
	gone := missing(now, to, slotRanges(left))
	maps.DeleteFunc(left, func(slot uint16, _ bool) bool {
		ranges := view.RangesOf(view.SlotsRange(slot, slot))
		return len(gone.Intersect(ranges)) == 0 || touched(now, told[slot], ranges)
	})
	if len(left) > 0 {
		m.sendOrWarn(to, left)
	}
}

// touched tells whether a migration of some places was asked for, or went on, since then.
func touched(now, then *meta.Snapshot, ranges view.Ranges) bool {
	for id, mig := range now.Migrations {
		old, known := then.Migrations[id]
		if (!known || !old.Stage.Ended()) && len(mig.Ranges.Intersect(ranges)) > 0 {
			return true
		}
	}
	return false
}

// sendOrWarn is send for slots whose client waits no more.
func (m *slotMover) sendOrWarn(to view.NodeID, slots map[uint16]bool) {
	m.send(to, slots, func(err error) {
		if err != nil {
			m.log.Warn("slots that a client moved did not move", "slots", len(slots), "to", string(to), "why", err)
		}
	})
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

// moveAll asks for migrations of all that is not the target's or on its way there, and waits until all is. Others may move the same
// slots at the same time: what they were faster with is left out, and the rest asked for again.
func (m *slotMover) moveAll(ctx context.Context, to view.NodeID, ranges view.Ranges) error {
	for {
		s, err := m.meta.Read(ctx)
		if err != nil {
			return err
		}
		switch again, err := m.moveSeen(ctx, s, to, ranges); {
		case err != nil:
			return err
		case !again:
			return nil
		}
	}
}

// moveSeen is moveAll by what a snapshot says. Again: others have moved a part meanwhile.
func (m *slotMover) moveSeen(ctx context.Context, s *meta.Snapshot, to view.NodeID, ranges view.Ranges) (again bool, err error) {
	var asked []uint64
	left := missing(s, to, ranges)
	for _, from := range s.Map.Owners() {
		part := left.Intersect(s.Map.Ranges(from))
		if from == to || len(part) == 0 {
			continue
		}
		mig, err := m.meta.Migrate(ctx, meta.MigrationRequest{
			Source: from, Target: to, Ranges: part, Options: meta.MigrationOptions{Sample: true}, Why: "a Redis client moves slots",
		})
		if err != nil {
			now, unread := m.meta.Read(ctx)
			if unread == nil && overtaken(now, from, part) {
				return true, nil
			}
			return false, err
		}
		asked = append(asked, mig.ID)
	}
	now, err := m.cache.Wait(ctx, func(now *meta.Snapshot) bool {
		return now.Map.Ranges(to).Covers(ranges) || ended(now, asked) != nil
	})
	if err != nil || now.Map.Ranges(to).Covers(ranges) {
		return false, err
	}
	for _, id := range asked {
		if mig := now.Migrations[id]; mig.Stage == meta.Failed && overtaken(now, mig.Source, mig.Ranges) {
			return true, nil
		}
	}
	return false, ended(now, asked)
}

// overtaken tells whether a node does not own all of ranges any more.
func overtaken(s *meta.Snapshot, from view.NodeID, ranges view.Ranges) bool {
	return !s.Map.Ranges(from).Covers(ranges)
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
