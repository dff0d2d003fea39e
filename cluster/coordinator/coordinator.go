// Package coordinator reacts to what happens to a cluster's nodes. It runs on
// every node; one is elected. It is on no data path: while there is none, all goes
// on but the recovery of nodes that die.
//
//	campaign ── term: for every change of the metadata
//	              nobody owns anything?   deal the space out, once enough nodes are there
//	              a wish?                 drain, add, remove
//	              an owner is dead?       survey ── enough have answered? ── Recover: map, retired log
//	              a recovery has no plan? survey with fence ── cut ── SetPlan: the heirs begin
//	              all heirs are done?     Finish: backups drop the log
//	              a wanted migration of a dead node?  it has failed
//
// Invariants:
//   - All state is in etcd. A coordinator that dies at any step leaves what the next one
//     goes on from; nothing is done twice that must be done once.
//   - Nobody is recovered who did not say that it ends, or was seen without a lease for the lease's grace: by then it
//     knows, even if clocks are being set.
//   - A log is retired only after enough backups have answered to find a copy of
//     each of its segments, and a plan is made only after as many have closed it to its primary.
package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// Surveyor asks nodes what they have of a log.
type Surveyor interface {
	// Survey asks all of nodes and returns when each has answered or did not in time. With
	// fence, who answers has closed the log to its primary, for good.
	Survey(ctx context.Context, log record.LogID, nodes []view.NodeID, fence bool) Findings
}

// Findings are the answers to a survey.
type Findings interface {
	// Answered tells whether a node has that keeps its replicas in this directory.
	Answered(n view.NodeID, directory uint64) bool
	// Lacking are segments of the log of which nobody who answered has a copy.
	Lacking() []record.SegmentID
	// Plan is what heirs replay; an error if the log is not whole.
	Plan() (meta.Plan, error)
	// Bytes is about how much that is.
	Bytes() int64
}

// Options are what a coordinator works with.
type Options struct {
	Member *meta.Member
	Cache  *meta.Cache
	Survey Surveyor
	Log    *slog.Logger
	// Quiet is how long no node may have come before the space is dealt out, unless
	// the settings say how many to wait for; 3 s if zero.
	Quiet time.Duration
	// Patience is how long a coordinator that was among the first nodes to join waits
	// for the others: it is more likely that a cluster starts than that most of it died. 10 s if zero.
	Patience time.Duration
	// Grace is for how long an owner must be seen without its lease before it counts as dead; the lease's own if zero.
	Grace time.Duration
	// Retry is the pause after which what did not work is tried again; 300 ms if zero.
	Retry time.Duration
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		p *time.Duration
		v time.Duration
	}{{&o.Quiet, 3 * time.Second}, {&o.Patience, 10 * time.Second}, {&o.Retry, 300 * time.Millisecond}} {
		if *d.p == 0 {
			*d.p = d.v
		}
	}
	if o.Grace == 0 {
		o.Grace = o.Member.Lease.Grace()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// coordinator is one term of office.
type coordinator struct {
	Options
	term *meta.Term
	now  func() time.Time

	livingSince  time.Time // for how long the same nodes are there
	livingNodes  string
	patientUntil time.Time
	whole        <-chan struct{}           // closed when nobody is waited for any more
	told         map[record.LogID]string   // the last stage that was told
	failed       string                    // the last step that failed, as it was told
	missed       map[view.NodeID]time.Time // since when owners are seen without a lease
	again        bool                      // something waits for time to pass
	soon         time.Duration             // and for no longer than this, if it is not 0
}

// Run stands for coordinator and works as one while it is, until ctx ends (then
// another can be elected at once) or the member's lease is lost.
func Run(ctx context.Context, o Options) error {
	o = o.withDefaults()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	whole := o.whole(watching)
	for ctx.Err() == nil {
		term, err := o.Member.Campaign(ctx)
		if err == nil {
			o.Log.Info("this node is the coordinator now")
			err = hold(ctx, o, term, whole)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, meta.ErrLeaseLost), !leased(o.Member):
			return meta.ErrLeaseLost
		}
		o.Log.Warn("this node is not the coordinator", "why", err)
		background.Pause(ctx, o.Retry)
	}
	return ctx.Err()
}

// leased tells whether the member may come back to life without joining again.
func leased(m *meta.Member) bool {
	select {
	case <-m.Lease.Lost():
		return false
	default:
		return true
	}
}

// whole returns a channel that is closed when all nodes were alive at one moment since this one
// joined. Then the cluster has started, and who is away has gone since.
func (o Options) whole(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		_, err := o.Cache.Wait(ctx, func(s *meta.Snapshot) bool {
			for n := range s.Nodes {
				if !s.IsAlive(n) && !s.Lost(n) {
					return false
				}
			}
			return s.Revision >= o.Member.Token()
		})
		if err == nil {
			close(done)
		}
	}()
	return done
}

// hold works through a term, and gives it back in good order.
func hold(ctx context.Context, o Options, term *meta.Term, whole <-chan struct{}) error {
	c := &coordinator{
		Options: o, term: term, now: time.Now, whole: whole,
		told: map[record.LogID]string{}, missed: map[view.NodeID]time.Time{},
	}
	err := c.work(ctx)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if e := term.Resign(last); e != nil && err == nil {
		err = e
	}
	return err
}

// work acts on every change of the metadata, until the term ends.
func (c *coordinator) work(ctx context.Context) error {
	c.begin()
	for {
		changed := c.Cache.Changed()
		c.again, c.soon = false, 0
		err := c.step(ctx, c.Cache.Snapshot())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, meta.ErrDeposed), errors.Is(err, meta.ErrLeaseLost):
			return err
		case err != nil:
			if c.failed != err.Error() {
				c.failed = err.Error()
				c.Log.Warn("a step of the coordinator failed and is tried again", "why", err)
			}
			c.again = true
		default:
			c.failed = ""
		}
		if err := c.sleep(ctx, changed); err != nil {
			return err
		}
	}
}

// sleep waits for a change, or for a while if something is to be tried again.
func (c *coordinator) sleep(ctx context.Context, changed <-chan struct{}) error {
	var retry <-chan time.Time
	if c.again || c.soon > 0 {
		pause := c.Retry
		if c.soon > 0 {
			pause = min(pause, c.soon)
		}
		timer := time.NewTimer(pause)
		defer timer.Stop()
		retry = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.term.Done():
		return meta.ErrDeposed
	case <-c.Member.Lease.Lost():
		return meta.ErrLeaseLost
	case <-changed:
	case <-retry:
	}
	return nil
}

// begin decides whether this is a cluster that starts: when this node joined, a short while
// ago, at most half of all nodes were there. The others are waited for.
func (c *coordinator) begin() {
	s := c.Member.Joined
	known := 0
	for n := range s.Nodes {
		if !s.Lost(n) {
			known++
		}
	}
	if 2*len(s.Alive) <= known {
		c.patientUntil = s.Alive[c.Member.Node.ID].Started.Add(c.Patience)
	}
}

// step does all that is to do as of a snapshot. What depends on its own changes is
// done when they come back in a later one.
func (c *coordinator) step(ctx context.Context, s *meta.Snapshot) error {
	if s.Map.IsZero() {
		return c.deal(ctx, s)
	}
	return errors.Join(
		c.wishes(ctx, s),
		c.recoveries(ctx, s),
		c.deaths(ctx, s),
		c.migrations(ctx, s),
	)
}
