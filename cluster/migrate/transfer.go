package migrate

import (
	"context"
	"errors"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
)

// silent is how long the source may say nothing while it yields.
const silent = 10 * time.Second

// transfer has the source give the ranges away, and hears that it has.
func (m *move) transfer(ctx context.Context) (stage, error) {
	if m.want.Options.Ownership == meta.OwnershipLate && m.want.Stage == meta.Wanted {
		if err := m.pullLate(ctx); err != nil {
			return yielding, err
		}
	}
	if err := m.halt(ctx, BeforeTransfer); err != nil {
		return yielding, err
	}
	from, segment := m.from()
	if m.o.HaltAt == AfterTransfer {
		// The answer is not waited for: the source has written to etcd, and this node knows nothing.
		_, _ = m.ask(ctx, transfer{ID: m.id, From: from, Segment: segment})
		return yielding, m.halt(ctx, AfterTransfer)
	}
	y, err := m.ask(ctx, transfer{ID: m.id, From: from, Segment: segment})
	switch {
	case errors.Is(err, errNotYet):
		return queued, nil
	case err != nil:
		return yielding, err
	}
	m.silence = time.Time{}
	m.yielded = y
	// What etcd says now must be known here before anything is opened.
	s, err := m.o.Cache.Wait(ctx, func(s *meta.Snapshot) bool { return s.Migrations[m.id].Stage != meta.Wanted })
	if err != nil {
		return yielding, err
	}
	m.want = s.Migrations[m.id]
	m.log.Info("the source has yielded", "ceiling", y.Ceiling, "records", y.Records)
	return opening, m.halt(ctx, Yielded)
}

// ask makes the call and keeps what comes with the answer.
func (m *move) ask(ctx context.Context, t transfer) (y yielded, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := m.o.Peers.Stream(ctx, m.want.Source, methodTransfer, t)
	if err != nil {
		return y, err
	}
	defer s.Close()
	s.Stall(silent)
	m.first = m.first[:0]
	for {
		var y yielded
		bulk, last, err := s.Next(&y)
		if err != nil {
			return y, err
		}
		m.first = append(m.first, bulk...)
		if last {
			return y, nil
		}
	}
}

// open begins to serve the ranges: what is there at once, and what is not when it comes.
func (m *move) open(ctx context.Context) (stage, error) {
	if m.arrival == nil {
		a, err := m.o.Landing.Arrive(m.want.Ranges, m.yielded.Ceiling, m.wanted)
		if err != nil {
			return opening, err
		}
		m.arrival = a
	}
	if m.pulls == nil {
		m.pulls = newPulls(m)
	}
	if err := m.pulls.importFirst(ctx, m.first); err != nil {
		return opening, err
	}
	m.first = nil
	if !m.late() {
		m.o.Gate.Open(m.want.Ranges)
	}
	return pulling, nil
}

func (m *move) late() bool { return m.want.Options.Ownership == meta.OwnershipLate }

// wanted is asked for a key by an operation that found it missing.
func (m *move) wanted(k Key, done func()) { m.priority.want(k, done) }

// adopt makes all that came as safe as any write of this node.
func (m *move) adopt(ctx context.Context) (stage, error) {
	if err := m.arrival.Adopt(ctx); err != nil {
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
	err = member.CompleteMigration(ctx, m.id, meta.MigrationStats{Records: m.records.Load(), Bytes: m.bytes.Load()})
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
	member, err := m.o.Member()
	if err != nil {
		return returning, err
	}
	plan, err := m.o.Landing.Plan(last)
	if err != nil {
		return returning, err
	}
	if err := member.Return(ctx, m.id, plan); err != nil {
		return returning, err
	}
	_, err = m.o.Cache.Wait(ctx, func(s *meta.Snapshot) bool { return s.Migrations[m.id].Stage != meta.Moving })
	return over, err
}

// leave ends the arrival once the ranges do not arrive any more: they have come, or the source has died and this
// node has replayed its log instead, or they are another's again.
func (m *move) leave(ctx context.Context) {
	if m.pulls != nil {
		m.pulls.close()
	}
	if m.arrival == nil {
		return
	}
	s, err := m.o.Cache.Wait(ctx, func(s *meta.Snapshot) bool {
		return len(s.Arriving(m.o.Self).Intersect(m.want.Ranges)) == 0
	})
	if err != nil {
		return
	}
	if len(s.Map.Ranges(m.o.Self).Intersect(m.want.Ranges)) == 0 {
		m.arrival.Abandon()
	} else {
		m.arrival.End()
	}
	m.log.Info("the migration has ended", "as", string(s.Migrations[m.id].Stage), "why", s.Migrations[m.id].Why,
		"records", m.records.Load(), "bytes", m.bytes.Load(), "took", time.Since(m.began).Round(time.Millisecond).String())
}
