package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

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
	defer r.telling(ctx, g, func() {})()
	for _, share := range g {
		if err := r.one(ctx, share); err != nil {
			return err
		}
	}
	r.at("removing what was deleted", 0, 0)
	return r.importer.Finish(ctx)
}

// one replays a part of one log.
func (r *replaying) one(ctx context.Context, share meta.Share) error {
	s := r.cache.Snapshot()
	recovery, ok := s.Replay(share)
	if !ok || recovery.Plan == nil {
		return fmt.Errorf("the recovery of log %016x has ended", uint64(share.Log))
	}
	part := partOf(recovery, share)
	r.at("asking for copies", 0, 0)
	found, cut, err := r.find(ctx, s, recovery)
	if err != nil {
		return err
	}
	return found.Fetch(ctx, replica.FetchOptions{
		Ranges: share.Ranges, Cut: cut, Floors: s.Logs[share.Log].Floors,
		Workers: replayWorkers, Without: recovery.Plan.Without,
		Sink: func(worker int, entries []byte) error { return r.workers[worker].Import(ctx, entries) },
		Progress: func(p replica.Progress) {
			r.at("replaying", int64(part*float64(p.BytesDone)), int64(part*float64(p.Bytes)))
			r.expect(p)
		},
	})
}

// partOf is how much of a log's bytes an heir takes, if records lie evenly: all heirs read the whole log.
func partOf(r meta.Recovery, share meta.Share) float64 {
	var all view.Ranges
	for _, p := range r.Parts {
		all = all.Union(p.Ranges)
	}
	return share.Ranges.Fraction() / all.Fraction()
}

// sampleSegments are how many segments tell what to expect of the others.
const sampleSegments = 3

// expect has the store make room once it is known what there is in a log. Some of the records replace others.
func (r *replaying) expect(p replica.Progress) {
	if p.SegmentsDone == sampleSegments {
		r.importer.Expect(int(float64(p.Entries) / float64(p.BytesDone) * float64(p.Bytes) * 3 / 4))
	}
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

// find asks who has the log now, those who live, and only if that is not enough all who may; and up to which batch it is to be read.
func (r *replaying) find(ctx context.Context, s *meta.Snapshot, recovery meta.Recovery) (f *replica.Findings, cut record.BatchID, err error) {
	plan, log := recovery.Plan, s.Logs[recovery.Log]
	for _, nodes := range [][]view.NodeID{s.Living(), append(s.Living(), log.Backups...)} {
		slices.Sort(nodes)
		f = r.survey(ctx, recovery.Log, slices.Compact(nodes), false, surveyWithin)
		switch {
		case f.Covers(plan.Roster, plan.Cut, plan.Without):
			return f, upTo(recovery), nil
		case recovery.Return != 0: // Its node lives, and makes anew what is missing.
		case f.Covers(0, 0, plan.Without) && nobodyElse(s, log, s.Heard(f.Answered), f.Damaged()):
			cut = upTo(recovery)
			if nothingLost(s, log, s.Heard(f.Answered), f.Damaged()) { // So none of the batches behind a hole was acknowledged.
				cut = min(cut, f.CutWithout())
			}
			r.log.Error("the end of a dead node's log was only at nodes that have lost it, or that an operator gave up: the log is replayed without it", "node", recovery.Node, "cut", cut, "planned", plan.Cut)
			return f, cut, nil
		}
	}
	r.at("waiting for copies that the plan counts on, at one of "+fmt.Sprint(log.Backups), 0, 0)
	return nil, 0, fmt.Errorf("replay the log of %s: %w", recovery.Node, errNotWhole)
}

// nobodyElse tells whether nobody is left who could have more of a log: all its backups have answered, have lost what they had, or were
// given up. If an operator gave up none, nor the node itself, nothing may be lost.
func nobodyElse(s *meta.Snapshot, log meta.Log, answered func(view.NodeID) bool, damaged bool) bool {
	given := s.Lost(log.Node) || nothingLost(s, log, answered, damaged)
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

// at notes how far it is. What is left is estimated from when the stage began.
func (r *replaying) at(stage string, done, total int64) {
	p := &meta.Progress{Stage: stage, Done: done, Total: total, Unit: "bytes", Began: time.Now().UTC()}
	if was := r.stage.Load(); was != nil && was.Stage == stage {
		p.Began = was.Began
	}
	r.stage.Store(p)
}

// tellEvery is how often progress is shown.
const tellEvery = 500 * time.Millisecond

// telling shows how far it is until stop has returned. It looks before each time.
func (r *replaying) telling(ctx context.Context, g legacy, look func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var teller sync.WaitGroup
	teller.Go(func() { r.tell(ctx, g, look) })
	return func() { cancel(); teller.Wait() }
}

// tell shows how far it is.
func (r *replaying) tell(ctx context.Context, g legacy, look func()) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	var logged time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		look()
		p := r.stage.Load()
		if p == nil {
			continue
		}
		now := *p
		now.Who, now.At = string(r.id.Node), time.Now().UTC()
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

// nothingLost tells whether so many backups have answered, and with copies that are whole, that nothing of what is not there was
// acknowledged: a plan counts on a roster and on batches that perhaps one backup had, and it has lost its disk since.
func nothingLost(s *meta.Snapshot, log meta.Log, answered func(view.NodeID) bool, damaged bool) bool {
	_, enough := s.Recoverable(log.ID, answered)
	return enough && !damaged && !s.Lost(log.Node) // Who gave the node itself up goes on with less than that.
}
