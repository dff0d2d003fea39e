package migrate

import (
	"context"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// A migration settles when all has come but cold records, of which the target knows. Clients notice nothing of
// it but that they wait for a disk when they need one of them, as they did at the source. Such a record comes when it
// is asked for; and all of them, segment by segment, in the background. The source is needed to the end.

// remaining is how many cold records are only known of.
func (m *move) remaining() int64 {
	if a := m.knows.Load(); a != nil {
		return a.Indirections()
	}
	return 0
}

// settle is the stage in which cold records come.
func (m *move) settle(ctx context.Context) (stage, error) {
	if m.arrival.Indirections() > 0 {
		if err := m.serve(ctx); err != nil {
			return settling, err
		}
	}
	if err := m.halt(ctx, Settling); err != nil {
		return settling, err
	}
	if err := m.pulls.settle(ctx); err != nil {
		return settling, err
	}
	return adopting, nil
}

// serve tells etcd that this node carries all load now.
func (m *move) serve(ctx context.Context) error {
	member, err := m.o.Member()
	if err != nil {
		return err
	}
	stats := meta.MigrationStats{Records: m.records.Load(), Bytes: m.bytes.Load(), Cold: m.arrival.Indirections(), Closed: m.closed}
	if err := member.ServeMigration(ctx, m.id, stats); err != nil {
		return err
	}
	m.log.Info("this node carries the load; cold records follow", "cold", stats.Cold, "took", time.Since(m.began).Round(time.Millisecond).String())
	return nil
}

// settle brings all cold records, by segments and what is left by places.
func (p *pulls) settle(ctx context.Context) error {
	if p.m.arrival.Indirections() == 0 {
		return nil
	}
	p.discard() // Their memory is for others now.
	one, err := p.puller()
	if err != nil {
		return err
	}
	defer one.close()
	for _, id := range p.m.arrival.ColdSegments() {
		if p.settled[id] {
			continue
		}
		shared, err := p.settleFromTier(ctx, one, id)
		if err != nil {
			return err
		}
		if !shared { // Else what is left of it comes by places.
			err = p.segment(ctx, one, id, true, func(took time.Duration, _ int) error { return p.rest(ctx, took) })
		}
		if err != nil {
			return err
		}
		if p.settled == nil {
			p.settled = map[record.SegmentID]bool{}
		}
		p.settled[id] = true
	}
	return p.settleRest(ctx, one)
}

// settlePlaces is how many places are asked for at once in the background.
const settlePlaces = 64

// settleRest brings what was not found in its segment: the source's cleaner has moved it.
func (p *pulls) settleRest(ctx context.Context, one *puller) error {
	for cursor := uint64(0); p.m.arrival.Indirections() > 0; {
		places, next, err := one.worker.Unresolved(cursor, settlePlaces)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := p.resolve(ctx, one, places); err != nil {
			return err
		}
		cursor = next
		if err := p.rest(ctx, time.Since(began)); err != nil {
			return err
		}
	}
	return nil
}

// resolve brings all that the source has at some places that are known of: from the shared tier if it is there.
func (p *pulls) resolve(ctx context.Context, one *puller, places []record.Place) error {
	left, err := p.readTier(ctx, one, places)
	for at := (store.PullCursor{}); err == nil && len(left) > 0; {
		ask := left[:min(len(left), store.MaxPullKeys)]
		var unsent store.Unsent
		unsent, err = p.resolveSome(ctx, one, ask, at)
		left, at = append(parted(ask, unsent.Has), left[len(ask):]...), unsent.Next
	}
	return err
}

// resolveSome asks the source for what is known of at some places, once, and says what is left.
func (p *pulls) resolveSome(ctx context.Context, one *puller, places []record.Place, at store.PullCursor) (store.Unsent, error) {
	unsent, err := p.pullUrgently(ctx, one, methodKnown, appendPlaces(nil, places), len(places), at)
	if err != nil {
		return unsent, err
	}
	n, err := one.worker.Resolved(parted(places, func(i int) bool { return !unsent.Has(i) }))
	p.m.cold.asked.Add(n)
	return unsent, err
}

// What settles in the background has the machine for a fifth of the time, unless somebody waits for its end.
const (
	settleRests = 4
	longestRest = 50 * time.Millisecond
)

// rest pauses after a step that took some time. The source has answered, so its patience begins anew.
func (p *pulls) rest(ctx context.Context, took time.Duration) error {
	p.m.silence.end()
	if p.hurried() {
		return ctx.Err()
	}
	pauseFor(ctx, min(settleRests*took, longestRest))
	return ctx.Err()
}

// hurried tells whether somebody waits for the end: a scan here, a migration of the same places or one that finds no room
// beside this, or an operator who wants the source to leave.
func (m *move) hurried() bool {
	if m.arrival.Hurried() {
		return true
	}
	s := m.o.Cache.Snapshot()
	if s.Draining(m.want.Source) || s.Draining(m.want.Target) {
		return true
	}
	return s.Awaited(m.want)
}
