package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// legacy is parts of logs that an heir replays together, for they have places in
// common: when an heir has died half-way, its own log has some of what it
// had replayed, and each of both may have the tombstones of the other's records. So have both sides
// of a migration. A part of a living log, whose node returns what it got by a migration, is as any other.
type legacy []meta.Share

// ranges are all places of it.
func (g legacy) ranges() (all view.Ranges) {
	for _, s := range g {
		all = all.Union(s.Ranges)
	}
	return all
}

// legacies returns what a node is to replay and can, as all of it has a plan.
func legacies(s *meta.Snapshot, heir view.NodeID) []legacy {
	var groups []legacy
	for r := range s.Replays() {
		for _, p := range r.Parts {
			if p.Heir == heir && !p.Done {
				groups = join(groups, meta.Share{Log: r.Log, Ranges: p.Ranges, Return: r.Return})
			}
		}
	}
	return slices.DeleteFunc(groups, func(g legacy) bool {
		return slices.ContainsFunc(g, func(p meta.Share) bool {
			r, _ := s.Replay(p)
			return r.Plan == nil
		})
	})
}

// join adds a share, and makes one group of all that have places in common with it.
func join(groups []legacy, share meta.Share) []legacy {
	merged := legacy{share}
	var apart []legacy
	for _, g := range groups {
		if len(g.ranges().Intersect(share.Ranges)) > 0 {
			merged = append(merged, g...)
		} else {
			apart = append(apart, g)
		}
	}
	return append(apart, merged)
}

// inherit replays what others left to this node, for as long as it is a member.
func (l *life) inherit(ctx context.Context, m *meta.Member) {
	select {
	case <-l.opened:
	case <-ctx.Done():
		return
	}
	l.heir.Lock()
	defer l.heir.Unlock()
	var told complaint
	for ctx.Err() == nil {
		changed := l.cache.Changed()
		groups := legacies(l.cache.Snapshot(), l.id.Node)
		var failed error
		for _, g := range groups {
			if failed = l.replay(ctx, m, g, told.what == ""); failed != nil {
				break
			}
		}
		switch {
		case ctx.Err() != nil:
			return
		case failed != nil:
			if told.isNew(failed, time.Now()) {
				l.log.Warn("what this node inherits could not be replayed; it tries again", "why", failed)
			}
			pauseFor(ctx, 200*time.Millisecond)
		case len(groups) == 0:
			told = complaint{}
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
	}
}

// complaint is what was told last of something that is tried again and again.
type complaint struct {
	what string
	at   time.Time
}

// complainEvery is how often the same is told.
const complainEvery = 10 * time.Second

// isNew tells whether an error is to be told: another one than before, or one that lasts.
func (c *complaint) isNew(err error, now time.Time) bool {
	if c.what == err.Error() && now.Sub(c.at) < complainEvery {
		return false
	}
	c.what, c.at = err.Error(), now
	return true
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// replay brings all records of a legacy into this node's log. When it returns they are
// as safe as any write, and the cluster knows that this node has them. It tells that it begins
// the first time.
func (l *life) replay(ctx context.Context, m *meta.Member, g legacy, first bool) error {
	began := time.Now()
	ranges := g.ranges()
	if first {
		l.log.Info("this node replays what it inherits", "logs", len(g), "share", fmt.Sprintf("%.2f%%", 100*ranges.Fraction()))
	}
	im, err := l.importer(ctx, ranges)
	if err != nil {
		return err
	}
	r := &replaying{life: l, member: m, importer: im, began: began}
	if err := r.all(ctx, g); err != nil {
		im.Abort()
		return err
	}
	if err := l.makeSafe(ctx, ranges); err != nil {
		return err
	}
	if err := m.Recovered(ctx, g...); err != nil {
		return err
	}
	stats := im.Stats()
	l.inherited.Add(stats.Taken)
	l.log.Info("this node has all that it inherited", "records", stats.Taken, "bytes", stats.Bytes, "took", time.Since(began).Round(time.Millisecond).String())
	// Not to begin with it again, the change must be seen here.
	_, err = l.cache.Wait(ctx, func(s *meta.Snapshot) bool {
		return len(s.Inheriting(l.id.Node).Intersect(ranges)) == 0
	})
	if err == nil {
		l.store.Arrived(storeRanges(ranges))
	}
	return err
}

// makeSafe sees to what an import passes over because the store has it: a migration may have brought it,
// whose source is dead now, to a segment that has no copies.
func (l *life) makeSafe(ctx context.Context, ranges view.Ranges) error {
	if l.adoptArrivals == nil {
		return nil
	}
	return l.adoptArrivals(ctx, ranges)
}

// storeRanges are ranges as the store has them.
func storeRanges(ranges view.Ranges) []store.Range {
	out := make([]store.Range, 0, len(ranges))
	for _, r := range ranges {
		out = append(out, store.Range(r))
	}
	return out
}

// importer begins an import of places, once nothing of them runs here but what knows of it: a
// source that gave them away a moment ago, and gets them back, may still be at work on them.
func (l *life) importer(ctx context.Context, ranges view.Ranges) (*store.Importer, error) {
	if err := l.haltReturn(ctx, ranges); err != nil {
		return nil, err
	}
	l.taking.Lock()
	defer l.taking.Unlock()
	l.gate.show(l.cache.Snapshot())
	passed := make(chan struct{})
	l.store.AfterGuards(func() { close(passed) })
	select {
	case <-passed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return l.store.NewImporter(store.ImportOptions{Owns: ranges.Contains})
}

// replaying is a replay under way.
type replaying struct {
	*life
	member   *meta.Member
	importer *store.Importer
	workers  []*store.ImportWorker
	began    time.Time
	stage    atomic.Pointer[meta.Progress]
}

// replayWorkers is how many segments are read and replayed at a time.
const replayWorkers = 4

func (r *replaying) all(ctx context.Context, g legacy) error {
	for range replayWorkers {
		w, err := r.importer.NewWorker()
		if err != nil {
			return err
		}
		r.workers = append(r.workers, w)
	}
	telling, stop := context.WithCancel(ctx)
	defer stop()
	r.tasks.Go(func() { r.tell(telling, g) })
	for _, share := range g {
		if err := r.one(ctx, share); err != nil {
			return err
		}
	}
	r.at("making it safe", 0, 0)
	return r.importer.Finish(ctx)
}

// one replays a part of one log.
func (r *replaying) one(ctx context.Context, share meta.Share) error {
	s := r.cache.Snapshot()
	recovery, ok := s.Replay(share)
	if !ok || recovery.Plan == nil {
		return fmt.Errorf("the recovery of log %016x has ended", uint64(share.Log))
	}
	r.at("asking for copies", 0, 0)
	found, err := r.find(ctx, s, recovery)
	if err != nil {
		return err
	}
	return found.Fetch(ctx, replica.FetchOptions{
		Ranges: share.Ranges, Cut: upTo(recovery), Floors: s.Logs[share.Log].Floors,
		Workers: replayWorkers, Without: recovery.Plan.Without,
		Sink:     func(worker int, entries []byte) error { return r.workers[worker].Import(ctx, entries) },
		Progress: func(p replica.Progress) { r.at("replaying", p.BytesDone, p.Bytes) },
	})
}

// upTo is the last batch that is replayed. A living log has no end: of what it returns it writes
// nothing any more, but its cleaner may have moved that to any later batch.
func upTo(r meta.Recovery) record.BatchID {
	if r.Return != 0 {
		return replica.AllBatches
	}
	return r.Plan.Cut
}

var errNotWhole = errors.New("copies of a log that a plan counts on cannot be reached")

// find asks who has the log now: those who live, and only if that is not enough all who may.
func (r *replaying) find(ctx context.Context, s *meta.Snapshot, recovery meta.Recovery) (*replica.Findings, error) {
	plan, log := recovery.Plan, s.Logs[recovery.Log]
	for _, nodes := range [][]view.NodeID{s.Living(), append(s.Living(), log.Backups...)} {
		slices.Sort(nodes)
		f := r.survey(ctx, recovery.Log, slices.Compact(nodes), false, surveyWithin)
		switch {
		case f.Covers(plan.Roster, plan.Cut, plan.Without):
			return f, nil
		case recovery.Return != 0: // Its node lives, and makes anew what is missing.
		case f.Covers(plan.Roster, 0, plan.Without) && nobodyElse(s, log, f.Answered):
			r.log.Error("the end of a dead node's log was only at nodes that an operator gave up: the log is replayed without it", "node", recovery.Node)
			return f, nil
		}
	}
	r.at("waiting for copies that the plan counts on, at one of "+fmt.Sprint(log.Backups), 0, 0)
	return nil, fmt.Errorf("replay the log of %s: %w", recovery.Node, errNotWhole)
}

// nobodyElse tells whether nobody is left who could have more of a log: all its backups
// have answered or were given up, and one of them was, or the node itself.
func nobodyElse(s *meta.Snapshot, log meta.Log, answered func(view.NodeID) bool) bool {
	given := s.Lost(log.Node)
	for _, b := range log.Backups {
		switch _, known := s.Nodes[b]; {
		case answered(b), meta.IsGhost(b): // Nobody has given up the latter.
		case s.Lost(b), !known:
			given = true
		default:
			return false
		}
	}
	return given
}

func (r *replaying) at(stage string, done, total int64) {
	r.stage.Store(&meta.Progress{Stage: stage, Done: done, Total: total, Unit: "bytes"})
}

// tellEvery is how often progress is shown.
const tellEvery = 500 * time.Millisecond

// tell shows how far it is.
func (r *replaying) tell(ctx context.Context, g legacy) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	var logged time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p := r.stage.Load()
		if p == nil {
			continue
		}
		now := *p
		now.Who, now.Began, now.At = string(r.id.Node), r.began.UTC(), time.Now().UTC()
		for _, share := range g {
			now.Log = share.Log
			if err := r.member.Tell(ctx, now); err != nil {
				break
			}
		}
		if time.Since(logged) > 5*time.Second {
			logged = time.Now()
			r.log.Info("replaying what this node inherits", "stage", now.Stage, "done", Size(now.Done).Short(), "of", Size(now.Total).Short(), "left", now.Left().Round(time.Second).String())
		}
	}
}
