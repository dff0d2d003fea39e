package server

import (
	"context"
	"slices"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/internal/background"
)

// taking is a legacy that this node has replayed. It serves it, and does not have the copies yet that every
// write has: so the logs which it came from are kept. If the node dies, others replay those together
// with its own log, as if it had not got so far. If it only starts again it replays them again.
type taking struct {
	*replaying
	legacy legacy
	serves bool
	stop   context.CancelFunc
	over   chan struct{} // closed when nobody is at work on it
	done   bool          // nothing is left to do; written before over is closed
}

// takings are those of a life. Whoever holds life.heir may call its methods.
type takings struct {
	all []*taking
}

// add has copies made of what was replayed.
func (ts *takings) add(ctx context.Context, m *meta.Member, t *taking) {
	ts.all = append(ts.all, t)
	t.settle(ctx, m)
}

// goOn is add for all that another lease's end has interrupted.
func (ts *takings) goOn(ctx context.Context, m *meta.Member) {
	for _, t := range ts.all {
		t.settle(ctx, m)
	}
}

// rest waits until nobody is at work, after the context has ended.
func (ts *takings) rest() {
	for _, t := range ts.all {
		<-t.over
	}
	ts.sweep()
}

// sweep forgets what is done.
func (ts *takings) sweep() {
	var left []*taking
	for _, t := range ts.all {
		select {
		case <-t.over:
			if t.done {
				continue
			}
		default:
		}
		left = append(left, t)
	}
	ts.all = left
}

// lacking are those legacies that were not replayed.
func (ts *takings) lacking(all []legacy) (lack []legacy) {
	ts.sweep()
	for _, g := range all {
		if !ts.has(g) {
			lack = append(lack, g)
		}
	}
	return lack
}

func (ts *takings) has(g legacy) bool {
	for _, t := range ts.all {
		all := true
		for _, share := range g {
			all = all && t.legacy.has(share)
		}
		if all {
			return true
		}
	}
	return false
}

// drop gives up what was replayed of places that are replayed anew, with other logs. Nobody is at work on
// the places then.
func (ts *takings) drop(ctx context.Context, l *life, g legacy) error {
	for _, t := range ts.all {
		if len(t.legacy.ranges().Intersect(g.ranges())) == 0 {
			continue
		}
		t.stop()
		<-t.over
		if t.done {
			continue
		}
		t.done = true
		l.gate.unserve(t.legacy)
		t.importer.Abort()
		if _, err := l.cut(ctx); err != nil {
			return err
		}
	}
	ts.sweep()
	return nil
}

// settle begins to make a taking as safe as any write.
func (t *taking) settle(ctx context.Context, m *meta.Member) {
	ctx, t.stop = context.WithCancel(ctx)
	t.over = make(chan struct{})
	t.replaying.member = m
	t.tasks.Go(func() {
		defer close(t.over)
		defer t.stop()
		var told complaint
		for !t.done && ctx.Err() == nil {
			err := t.finish(ctx)
			switch {
			case err == nil || t.gone(t.cache.Snapshot()):
				t.done = true
			case ctx.Err() == nil:
				if told.isNew(err, time.Now()) {
					t.log.Warn("what this node inherited lacks copies; it tries again", "why", err)
				}
				background.Pause(ctx, 200*time.Millisecond)
			}
		}
	})
}

// gone tells whether nobody waits for it any more: it is done, or other logs are to be replayed.
func (t *taking) gone(s *meta.Snapshot) bool {
	return !slices.ContainsFunc(inheritance(s, t.id.Node), t.legacy.has)
}

// finish returns when all has its copies, and the cluster knows that: then the logs may go.
func (t *taking) finish(ctx context.Context) error {
	if t.serves {
		if err := t.member.Serving(ctx, t.legacy...); err != nil {
			return err
		}
	}
	if err := t.copy(ctx); err != nil {
		return err
	}
	if err := t.member.Recovered(ctx, t.legacy...); err != nil {
		return err
	}
	t.log.Info("what this node inherited has its copies", "bytes", t.importer.Stats().Bytes, "took", time.Since(t.began).Round(time.Millisecond).String())
	// Not to begin with it again, the change must be seen here.
	_, err := t.cache.Wait(ctx, t.gone)
	return err
}

// copy has copies made, and tells how far that is.
func (t *taking) copy(ctx context.Context) error {
	bytes, all := t.importer.Stats().Bytes, t.importer.Pending()
	look := func() { t.at(stageCopying, copiedOf(bytes, all, t.importer.Pending()), bytes) }
	look()
	defer t.telling(ctx, t.legacy, look)()
	return t.importer.Adopt(ctx)
}

// stageCopying is what is told of a legacy that is served and lacks copies.
const stageCopying = "served, making copies"

// copiedOf is about how much of some bytes has its copies, if of all segments some are left. The last of each
// worker is closed, and so counted, later than the others.
func copiedOf(bytes int64, all, left int) int64 {
	if left >= all {
		return 0
	}
	return bytes / int64(all) * int64(all-left)
}
