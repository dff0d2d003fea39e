package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
)

// departure is ranges that a target copies while this node serves them: late ownership.
//
//	noting ── withheld ── handing ── the migration has ended
//	   ^          └── the target says nothing for long, or begins anew
//	   └──────────┘
//
// Invariant: from handing on the ranges are served again only when the migration is seen to have ended, for the
// step that gives them away may come to pass at any time. Before, this node alone decides.
type departure struct {
	id     migrate.ID
	token  uint64
	ranges view.Ranges
	noted  *store.Departure

	mu      sync.Mutex // held while it goes from one to the next
	state   departing
	silence *time.Timer // while withheld
}

type departing int

const (
	noting departing = iota
	withheld
	handing
	over
)

const (
	// withholdFor is how long a target may take to copy the last changes.
	withholdFor = 10 * time.Second
	// handWithin is how long the step that hands over may take, before the migration is ended another way.
	handWithin = 15 * time.Second
)

// departures are those of a life.
type departures struct {
	beginning sync.Mutex // held from the end of one to the beginning of the next in its place
	mu        sync.Mutex
	all       map[migrate.ID]*departure
}

func (ds *departures) of(id migrate.ID) *departure {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.all[id]
}

// set adds one.
func (ds *departures) set(d *departure) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.all == nil {
		ds.all = map[migrate.ID]*departure{}
	}
	ds.all[d.id] = d
}

func (ds *departures) remove(d *departure) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.all[d.id] == d {
		delete(ds.all, d.id)
	}
}

// ended gives those whose migrations have ended.
func (ds *departures) ended(s *meta.Snapshot) (list []*departure) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for id, d := range ds.all {
		if m, there := s.Migrations[id]; !there || m.Stage.Ended() {
			list = append(list, d)
		}
	}
	return list
}

var errNotNoted = errors.New("changes are not noted for this copy: it must begin anew")

// Depart notes what changes; see migrate.LateOrigin.
func (o origin) Depart(ctx context.Context, id migrate.ID, target view.NodeID) (m meta.Migration, token uint64, err error) {
	l, err := o.opened()
	if err != nil {
		return m, 0, err
	}
	s, err := l.cache.Wait(ctx, func(s *meta.Snapshot) bool { return s.Migrations[id].ID == id && s.Migrations[id].Stage != meta.Wanted })
	if err != nil {
		return m, 0, err
	}
	m = s.Migrations[id]
	if err := l.copied(s, m, id, target); err != nil {
		return m, 0, err
	}
	l.departures.beginning.Lock() // A target whose question was lost on the way asks again while the first is looked into.
	defer l.departures.beginning.Unlock()
	if old := l.departures.of(id); old != nil && !l.abandon(old) {
		return m, 0, fmt.Errorf("migration %d is being handed over: ask again", id)
	}
	noted, err := l.store.Depart(ctx, migrate.Ranges(m.Ranges))
	if err != nil {
		return m, 0, err
	}
	d := &departure{id: id, token: rand.Uint64(), ranges: m.Ranges, noted: noted}
	l.departures.set(d)
	l.log.Info("a node copies keys of this one", "migration", id, "to", string(target), "share", fmt.Sprintf("%.3f%%", 100*m.Ranges.Fraction()))
	l.endDepartures(l.cache.Snapshot()) // It may have ended meanwhile.
	return m, d.token, nil
}

// copied says why a migration is not one whose target copies what this node owns.
func (l *life) copied(s *meta.Snapshot, m meta.Migration, id migrate.ID, target view.NodeID) error {
	if err := l.gives(m, id, target); err != nil {
		return err
	}
	switch {
	case m.Stage != meta.Copying:
		return fmt.Errorf("migration %d is %s: there is nothing to copy", id, m.Stage)
	case !s.Map.Ranges(l.self).Covers(m.Ranges):
		return fmt.Errorf("%s does not own what migration %d is to copy", l.self, id)
	}
	return nil
}

// noted gives what is noted for a copy, with its lock held.
func (l *life) noted(id migrate.ID, token uint64) (*departure, error) {
	d := l.departures.of(id)
	if d == nil || d.token != token {
		return nil, errNotNoted
	}
	d.mu.Lock()
	if d.state != noting && d.state != withheld {
		d.mu.Unlock()
		return nil, errNotNoted
	}
	return d, nil
}

// Changes takes what was noted; see migrate.LateOrigin.
func (o origin) Changes(ctx context.Context, id migrate.ID, target view.NodeID, token uint64, last bool) (m meta.Migration, keys []store.ArrivingKey, err error) {
	l, err := o.opened()
	if err != nil {
		return m, nil, err
	}
	s := l.cache.Snapshot()
	m = s.Migrations[id]
	if err := l.copied(s, m, id, target); err != nil {
		return m, nil, err
	}
	d, err := l.noted(id, token)
	if err != nil {
		return m, nil, err
	}
	defer d.mu.Unlock()
	if last {
		if err := l.withhold(ctx, d); err != nil {
			return m, nil, err
		}
	}
	keys, err = d.noted.Take(ctx)
	return m, keys, err
}

// withhold has operations on the ranges wait, and returns when none is under way. The caller holds the departure.
func (l *life) withhold(ctx context.Context, d *departure) error {
	if d.state == noting {
		d.state = withheld
		d.silence = time.AfterFunc(withholdFor, func() {
			if l.abandon(d) {
				l.log.Warn("a node that copies keys of this one is silent: they are served again", "migration", d.id)
			}
		})
		l.gate.withhold(d.id, d.ranges)
	}
	_, err := l.cut(ctx)
	return err
}

// abandon ends a departure, and the ranges are served again; false if it is too late for that.
func (l *life) abandon(d *departure) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == handing {
		return false
	}
	l.end(d)
	return true
}

// end ends a departure. The caller holds it.
func (l *life) end(d *departure) {
	if d.state == over {
		return
	}
	d.state = over
	if d.silence != nil {
		d.silence.Stop()
	}
	l.gate.unwithhold(d.id)
	d.noted.End() // Afterwards: a truncation of the store goes by this order.
	l.departures.remove(d)
}

// endDepartures ends those whose migrations have ended.
func (l *life) endDepartures(s *meta.Snapshot) {
	for _, d := range l.departures.ended(s) {
		go l.abandon(d) // Whoever holds it may wait for front doors, and they for this.
	}
}

// HandOver gives ranges away; see migrate.LateOrigin. Once begun it does not end with the call.
func (o origin) HandOver(ctx context.Context, id migrate.ID, _ view.NodeID, token uint64, c meta.Copied) error {
	l, err := o.opened()
	if err != nil {
		return err
	}
	d, err := l.noted(id, token)
	if err != nil {
		return err
	}
	if d.state != withheld {
		d.mu.Unlock()
		return errNotNoted
	}
	d.state = handing
	d.silence.Stop()
	d.mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- l.handOver(d, c) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handOver hands over, and sees to it that the migration ends, one way or another. Until that is seen nobody serves.
func (l *life) handOver(d *departure, c meta.Copied) error {
	var failed error
	for first := true; ; first = false {
		err := l.handOnce(d.id, c, first, failed)
		if first {
			failed = err
		}
		s, waited := l.sees(d.id, err == nil)
		if waited != nil {
			return waited // The life has ended, and with it all that it would serve.
		}
		if m := s.Migrations[d.id]; m.Stage.Ended() || m.ID != d.id {
			l.gate.show(s)
			d.mu.Lock()
			l.end(d)
			d.mu.Unlock()
			if m.Stage != meta.Done {
				return fmt.Errorf("migration %d is %s: %s", d.id, m.Stage, m.Why)
			}
			l.log.Info("this node has handed keys over", "migration", d.id, "to", string(m.Target))
			return nil
		}
		l.pause(migrateRetry)
	}
}

// handOnce writes that the ranges are the target's, the first time, and else that they stay.
func (l *life) handOnce(id migrate.ID, c meta.Copied, first bool, failed error) error {
	ctx, cancel := context.WithTimeout(l.ctx, handWithin)
	defer cancel()
	member, err := l.ledger.current()
	switch {
	case err != nil:
		return err
	case first:
		return member.HandOver(ctx, id, c)
	}
	return member.FailMigration(ctx, id, fmt.Sprintf("it could not be handed over: %v", failed))
}

// sees gives what is known of the metadata, and waits for the end of a migration if that was written.
func (l *life) sees(id migrate.ID, written bool) (*meta.Snapshot, error) {
	if !written {
		return l.cache.Snapshot(), l.ctx.Err()
	}
	return l.cache.Wait(l.ctx, func(s *meta.Snapshot) bool {
		m, there := s.Migrations[id]
		return !there || m.Stage.Ended()
	})
}
