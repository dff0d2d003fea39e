package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// silent is how long the source may say nothing while it yields.
const silent = 10 * time.Second

// transfer has the source give the ranges away, and hears that it has.
func (m *move) transfer(ctx context.Context) (stage, error) {
	if err := m.halt(ctx, BeforeTransfer); err != nil {
		return yielding, err
	}
	switch err := m.begins(); {
	case errors.Is(err, meta.ErrNotYet):
		return queued, nil
	case err != nil:
		return m.giveUp(ctx, err)
	}
	if err := m.ready(ctx); err != nil {
		return yielding, err
	}
	asks, err := m.stands(ctx)
	if err != nil {
		return yielding, err
	}
	m.o.Gate.Expect(m.want.Ranges)
	gone := false
	defer func() {
		if !gone {
			m.o.Gate.Unexpect(m.want.Ranges) // Else they are until they are opened.
		}
	}()
	if m.o.HaltAt == AfterTransfer {
		// Its answer is not heard: the source has written to etcd, and nobody serves.
		_, _ = m.ask(ctx, asks)
		return yielding, m.halt(ctx, AfterTransfer)
	}
	asked := time.Now()
	y, err := m.ask(ctx, asks)
	switch {
	case errors.Is(err, errNotYet):
		return queued, nil
	case err != nil:
		return yielding, err
	}
	m.silence.end()
	m.waits("")
	m.yielded, m.heard = y, time.Now()
	m.closed = y.closedFor(m.heard.Sub(asked))
	if y.Bytes > 0 {
		m.total.Store(y.Bytes)
	}
	// What etcd says now must be known here before anything is opened.
	s, err := m.o.Cache.Wait(ctx, func(s *meta.Snapshot) bool { return s.Migrations[m.id].Stage != meta.Wanted })
	if err != nil {
		return yielding, err
	}
	m.want, gone = s.Migrations[m.id], true
	m.log.Info("the source has yielded", "ceiling", y.Ceiling, "bytes", m.total.Load(), "took", time.Since(m.began).Round(time.Millisecond).String())
	return opening, m.halt(ctx, Yielded)
}

// begins says why the migration cannot begin, or not yet, though it could when it left the queue: the source refuses it then, however
// often it is asked. One that has begun goes on.
func (m *move) begins() error {
	s := m.o.Cache.Snapshot()
	if now := s.Migrations[m.id]; now.Stage == meta.Wanted {
		return m.may(s, now)
	}
	return nil
}

// may says why the migration cannot begin at this node, or not yet. Of a database that this process has not got it could import nothing,
// and clients would wait for that.
func (m *move) may(s *meta.Snapshot, mig meta.Migration) error {
	if err := s.Ready(mig); err != nil {
		return err
	}
	if has, others := m.o.Store.Options().Databases, s.Settings.Databases; has < others {
		return fmt.Errorf("%w: other nodes have databases 0 to %d, and the process of %s has 0 to %d: start it again, and it has them, too",
			meta.ErrNotYet, others-1, m.o.Self, has-1)
	}
	return nil
}

// ready makes what the arrival needs, so that clients need not wait for it between the source and this node, nor the first of
// them for a connection to it.
func (m *move) ready(ctx context.Context) (err error) {
	if m.arrival != nil {
		return nil
	}
	if m.room == nil && m.want.Options.Indirect() {
		m.room, err = m.o.Store.NewArrivalRoom()
	}
	for err == nil && len(m.lines) < 1+atOnce() {
		var line *peer.Line
		if line, err = m.o.Peers.Line(m.want.Source); err == nil {
			m.lines = append(m.lines, line)
			err = line.Connect(ctx)
		}
	}
	return err
}

// line gives a line to the source: one that is ready, or another.
func (m *move) line() (*peer.Line, error) {
	last := len(m.lines) - 1
	if last < 0 {
		return m.o.Peers.Line(m.want.Source)
	}
	line := m.lines[last]
	m.lines = m.lines[:last]
	return line, nil
}

// dropLines closes those that nobody took.
func (m *move) dropLines() {
	for _, line := range m.lines {
		_ = line.Close()
	}
	m.lines = nil
}

// stands is what this node says of itself when it asks. Once the ranges are its own, as after a restart, that counts for nothing, and clients
// wait.
func (m *move) stands(ctx context.Context) (meta.Asked, error) {
	member, err := m.o.Member()
	if err != nil {
		return meta.Asked{}, err
	}
	if m.o.Cache.Snapshot().Migrations[m.id].Stage != meta.Wanted {
		return member.Asks(m.o.Store.Position()), nil
	}
	m.waits("copies of what the log of " + string(m.o.Self) + " has")
	from, segment, err := m.o.Store.SettledPosition(ctx)
	return member.Asks(from, segment), err
}

// ask makes the call and keeps what comes with the answer. What it says of this node's log counts if the source has not
// yielded before.
func (m *move) ask(ctx context.Context, asks meta.Asked) (yielded, error) {
	s, err := m.o.Peers.Stream(ctx, m.want.Source, methodTransfer, transfer{
		ID: m.id, From: asks.From, Segment: asks.FromSegment, Incarnation: asks.Incarnation,
		Counted: m.total.Load() > 0, Ahead: !m.hasAsked, Later: !m.hasAsked,
	})
	m.hasAsked = true // A source that refuses is asked twenty times a second, and need not send so much each time.
	if err != nil {
		return yielded{}, err
	}
	m.answer = s
	s.Stall(silent)
	m.first, m.rest = m.first[:0], nil
	var early []byte
	for {
		var y yielded
		bulk, last, err := s.Next(&y)
		if err != nil {
			return y, err
		}
		if y.Ahead {
			early = append(early, bulk...)
		} else {
			m.first = append(m.first, bulk...)
		}
		if last || y.All {
			if y.Later {
				if early, m.rest, err = cutAt(early, y.Until); err != nil {
					return y, err
				}
			}
			if m.first, err = appendValid(m.first, early, y.Outdated); err != nil {
				return y, err
			}
			return y, m.halt(ctx, AfterTransfer)
		}
	}
}

// hearOut ends the last question, once nobody waits for what it brought: all of that has come by then. What follows is imported if
// this node serves the ranges.
func (m *move) hearOut(ctx context.Context, serves bool) {
	if m.answer == nil {
		return
	}
	m.answer.Stall(time.Second)
	for {
		var y yielded
		_, last, err := m.answer.Next(&y)
		if err == nil && y.Later && !y.All && serves {
			err = m.importRest(ctx, y.Outdated)
		}
		if err != nil { // A source that says nothing more is found out by others, and what did not come is pulled.
			m.log.Debug("what was sent ahead did not all come", "why", err)
		}
		if last || err != nil {
			break
		}
	}
	_ = m.answer.Close()
	m.answer, m.rest = nil, nil
}

// importRest takes of what was judged last all but what is outdated.
func (m *move) importRest(ctx context.Context, outdated []extent) error {
	entries, err := appendValid(nil, m.rest, outdated)
	if err == nil {
		err = m.pulls.openLanes()
	}
	if err != nil {
		return err
	}
	return m.pulls.lanes[0].worker.Import(ctx, entries) // Its lane does not run yet.
}

// open begins to serve the ranges: what is there at once, and what is not when it comes.
func (m *move) open(ctx context.Context) (stage, error) {
	if err := m.arrive(); err != nil {
		return opening, err
	}
	if m.pulls == nil {
		m.pulls = newPulls(m)
	}
	if err := m.pulls.importFirst(ctx, m.first); err != nil {
		return opening, err
	}
	m.first = nil
	m.o.Gate.Open(m.want.Ranges)
	if m.closed > 0 {
		m.closed += time.Since(m.heard)
		m.log.Info("this node serves the ranges", "closed", m.closed.Round(time.Microsecond).String(), "ofThatAtTheSource", m.yielded.Closed.Round(time.Microsecond).String())
	}
	return pulling, nil
}

// arrive tells the store what comes, if etcd still says so: if the source has died, another way may have begun.
func (m *move) arrive() error {
	if m.arrival != nil {
		return nil
	}
	m.o.Taking.Lock()
	defer m.o.Taking.Unlock()
	if m.o.Cache.Snapshot().Migrations[m.id].Stage != meta.Moving {
		return errEnded
	}
	a, err := m.o.Store.Arrive(store.ArriveOptions{Ranges: Ranges(m.want.Ranges), Ceiling: m.yielded.Ceiling, Puller: m, Indirect: m.want.Options.Indirect(), Room: m.room})
	m.arrival = a
	m.knows.Store(a)
	return err
}

// Want is how the store asks for keys that operations found missing.
func (m *move) Want(list []store.ArrivingKey, done func(error)) {
	if len(list) == 0 {
		done(nil)
		return
	}
	if m.want.Options.PriorityPulls == meta.PriorityPullsSync {
		go m.pulls.now(list, done)
		return
	}
	left := new(atomic.Int64)
	left.Store(int64(len(list)))
	came := func(err error) {
		if left.Add(-1) == 0 {
			done(err)
		}
	}
	for _, k := range list {
		m.priority.note(k, came)
	}
	m.priority.call()
}

// adopt makes all that came as safe as any write of this node.
func (m *move) adopt(ctx context.Context) (stage, error) {
	if err := m.arrival.Finish(ctx); err != nil {
		return adopting, err
	}
	// What clients wrote over records that came may be newer than their copies: it is needed from here on.
	if _, err := m.o.Store.Settle(ctx); err != nil {
		return adopting, err
	}
	return completing, m.halt(ctx, Adopted)
}

// complete ends the migration.
func (m *move) complete(ctx context.Context) (stage, error) {
	member, err := m.o.Member()
	if err != nil {
		return completing, err
	}
	err = member.CompleteMigration(ctx, m.id, meta.MigrationStats{Records: m.records.Load(), Bytes: m.bytes.Load(), Closed: m.closed, Served: m.served, Followed: m.cold.followed()})
	if err != nil {
		return completing, err
	}
	if err := m.halt(ctx, Completed); err != nil {
		return completing, err
	}
	return m.seen(ctx)
}

// giveBack returns the ranges to the source, with all that clients wrote here.
func (m *move) giveBack(ctx context.Context) (stage, error) {
	last, err := m.o.Gate.Shut(ctx, m.want.Ranges)
	if err != nil {
		return returning, err
	}
	m.stopPulls()
	m.receiving.end() // What the source was told to be safe here is in the roster that it gets.
	if err := m.halt(ctx, Shut); err != nil {
		return returning, err
	}
	m.o.Gate.Expect(m.want.Ranges)
	defer m.o.Gate.Unexpect(m.want.Ranges)
	if err := m.returnOnce(ctx, last); err != nil {
		return returning, err
	}
	_, err = m.o.Cache.Wait(ctx, func(s *meta.Snapshot) bool { return s.Migrations[m.id].Stage != meta.Moving })
	if err != nil {
		return returning, err
	}
	if err := m.halt(ctx, Returned); err != nil {
		return returning, err
	}
	m.awaitSource(ctx)
	return over, nil
}

// returnOnce writes that the ranges are the source's again, unless etcd says so: of an attempt before this one only the answer may have
// been lost, and another would be refused for as long as the source takes.
func (m *move) returnOnce(ctx context.Context, last record.BatchID) error {
	if m.o.Cache.Snapshot().Migrations[m.id].Stage == meta.Returning {
		return nil
	}
	member, err := m.o.Member()
	if err != nil {
		return err
	}
	if err := member.Return(ctx, m.id, meta.Plan{Cut: last, Roster: m.o.Roster()}, m.returns); err != nil {
		return err
	}
	m.log.Info("what came was returned to the source", "batch", last)
	return nil
}

// awaitSource waits until the source knows that it has the ranges back, if it can be asked.
func (m *move) awaitSource(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, silent/2)
	defer cancel()
	if _, err := m.o.Peers.Call(ctx, m.want.Source, methodReturned, transfer{ID: m.id}, nil, nil); err != nil {
		m.log.Warn("the source did not say that it knows of the return", "why", err)
	}
}

// stopPulls lets operations go that wait for keys. The gate holds them now.
func (m *move) stopPulls() {
	if m.pulls != nil {
		m.pulls.close()
	}
	if m.arrival != nil {
		m.arrival.Release(nil)
	}
}

// leave ends the arrival once the ranges do not arrive any more: they have come, or the source has died and this
// node has replayed its log instead, or they are another's again, who has replayed this one's. Until then
// what the arrival knows of deleted keys is needed, and operations wait.
func (m *move) leave(ctx context.Context) {
	if m.pulls != nil {
		m.pulls.close()
	}
	m.dropCopy()
	m.dropLines()
	m.room.Close()
	m.receiving.end()
	close(m.quiet)
	m.o.Gate.Unexpect(m.want.Ranges)
	if m.arrival != nil {
		m.arrival.Release(nil) // Who waits for a key that nobody asks for any more waits for the recovery, as long as others do.
	}
	s, err := m.o.Cache.Wait(ctx, func(s *meta.Snapshot) bool {
		now, there := s.Migrations[m.id]
		return (!there || now.Stage.Ended()) && len(s.Arriving(m.o.Self).Intersect(m.want.Ranges)) == 0
	})
	if err != nil {
		return
	}
	if m.arrival != nil {
		m.arrival.End()
	}
	if m.prepared != nil {
		m.prepared()
	}
	m.log.Info("the migration has ended", "as", string(s.Migrations[m.id].Stage), "why", s.Migrations[m.id].Why,
		"records", m.records.Load(), "bytes", m.bytes.Load(), "took", time.Since(m.began).Round(time.Millisecond).String())
}
