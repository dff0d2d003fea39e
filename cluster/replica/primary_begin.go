package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/engine/hlog"
)

// Rosters are told apart by their numbers, which must be higher in each life than in all before: a recovery takes the highest
// that any node has, and backups keep theirs. Backups that are asked may not have the newest one, so the replica version, which
// every life raises in etcd, is in the upper half. What a life says before that, once all has its copies, has the version of the
// life before, and the upper half of its numbers. Before even that numbers leap: of those that were found some that are higher
// may be at others.
const (
	rosterGap     = 1 << 20
	rosterLife    = 32 // bits
	rosterBetween = 1 << (rosterLife - 1)
)

// completionDepth is more than what is in flight at any moment.
const completionDepth = 4096

// Begin starts replication. It returns when all segments of a former life have their
// copies; formerly open ones are closed by now, and longer than what the backups have.
func (p *Primary) Begin(ctx context.Context, s hlog.Source) error {
	if p.began.Swap(true) {
		return errors.New("replica: a primary begins once")
	}
	p.source = s
	if p.o.SharedMemory {
		p.lent.bytes = s.SegmentBytes
	}
	ctx, cancel := p.bound(ctx)
	defer cancel()
	if err := p.attach(); err != nil {
		return err
	}
	p.mu.Lock() // Others may ask for Metrics.
	for _, g := range s.Segments {
		p.books.closed[g.ID] = &closedSegment{id: g.ID, Closing: Closing{End: g.End, Batch: g.Batch}}
	}
	p.mu.Unlock()
	former := len(s.Segments) > 0 || len(p.o.Backups) > 0 || p.o.Version > 1
	p.water.begin(0)
	if former {
		if err := p.resume(ctx); err != nil {
			return err
		}
	}
	p.water.begin(s.Last)
	if p.o.Mode == OneSided {
		p.start(p.poller)
	}
	for _, task := range []func(context.Context){
		p.closeLoop, p.keepLoop, p.copyLoop, p.healthLoop, p.strayLoop, p.probeLoop, p.stallLoop, p.advanceLoop,
	} {
		p.start(task)
	}
	return nil
}

// attach makes what writes need of the fabric.
func (p *Primary) attach() error {
	if p.o.Mode != OneSided {
		return nil
	}
	if p.o.Device == nil {
		return errors.New("replica: one-sided replication needs a fabric device")
	}
	var err error
	if p.domain, err = p.o.Device.NewDomain("replica"); err != nil {
		return fmt.Errorf("replicate over the fabric: %w", err)
	}
	if p.cq, err = p.domain.NewCQ(completionDepth); err != nil {
		return errors.Join(fmt.Errorf("replicate over the fabric: %w", err), p.domain.Close())
	}
	p.staging.domain = p.domain
	return nil
}

// resume brings the copies of a former life's segments up to date.
func (p *Primary) resume(ctx context.Context) error {
	said := ""
	for pause := firstPause / 32; ; pause = min(2*pause, firstPause) {
		err := p.resumeOnce(ctx, p.o.Members())
		if err == nil {
			return nil
		}
		if why := err.Error(); why != said {
			p.o.Log.Info("waiting for backups to have the log of the node's former life", "error", why)
			said = why
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("copy the log of a former life: %w", errors.Join(context.Cause(ctx), err))
		case <-time.After(pause): // Not the members' news: each try makes some.
		}
	}
}

func (p *Primary) resumeOnce(ctx context.Context, m Membership) error {
	found, err := p.surveyAll(ctx, m.Living)
	if err != nil {
		p.o.Log.Warn("a node did not say what it has of this log", "error", err)
	}
	p.mu.Lock()
	if found.Number > p.books.number { // What is found from the second time on is mostly of this life.
		p.books.number = found.Number + rosterGap
	}
	p.mu.Unlock()
	if p.water.batch() < found.Safe {
		p.water.begin(found.Safe) // What rosters say until all is copied.
	}
	if err := p.degrade(ctx, m); err != nil {
		return err
	}
	p.mu.Lock()
	alone := p.books.reachable(p.o.Self, m.Living, p.o.Now()) == 0
	p.mu.Unlock()
	if alone && p.o.Copies > 0 && m.Known > 1 { // Also one that has had no copies so far, as it was alone.
		return errAlone(m)
	}
	if _, err := p.copyAll(ctx, m, false); err != nil {
		return err
	}
	p.mu.Lock()
	least, copies := p.leastCopies(), p.books.copies
	p.mu.Unlock()
	if least < copies {
		return fmt.Errorf("a segment has %d copies of %d", least, copies)
	}
	return p.outdate(ctx, m)
}

// outdate makes what was open in the former life stale: it is closed now, and copied. Segments that nothing was written to have no
// copies, so no roster may have them any more before that: whoever recovers the log would look for them.
func (p *Primary) outdate(ctx context.Context, m Membership) error {
	p.water.begin(p.source.Last) // All is in every copy.
	p.leap(rosterBetween)
	if err := p.spreadRoster(ctx, m.Living); err != nil {
		return err
	}
	p.mu.Lock()
	p.books.raising++
	version := p.books.raising
	p.mu.Unlock()
	if err := p.raiseLedger(ctx, version); err != nil {
		return err
	}
	p.leap(0)
	return p.spreadRoster(ctx, m.Living)
}

// leap has rosters numbered from somewhere in the range of the replica version on.
func (p *Primary) leap(from uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.books.number = max(p.books.number, p.books.version<<rosterLife|from)
}

var _ hlog.Replicator = (*Primary)(nil)
