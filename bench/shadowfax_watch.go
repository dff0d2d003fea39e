package bench

import (
	"context"
	"sync/atomic"
	"time"
)

// shadowWatch looks at both nodes of a move again and again.
type shadowWatch struct {
	on    *shadowCluster
	admin [2]string // of source and target
	move  atomic.Uint64
	seen  []shadowLook
	done  chan struct{}
}

// shadowLook is what both nodes told at a moment.
type shadowLook struct {
	at        time.Time
	ops       [2]float64
	waiting   float64
	remaining int64
}

func newShadowWatch(on *shadowCluster) (*shadowWatch, error) {
	w := &shadowWatch{on: on, done: make(chan struct{})}
	for i, n := range []devNode{on.source, on.target} {
		var err error
		if w.admin[i], err = on.admin(n); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// follow tells which migration is meant.
func (w *shadowWatch) follow(id uint64) { w.move.Store(id) }

// run looks until the context ends. What a node does not tell in time is left out.
func (w *shadowWatch) run(ctx context.Context) {
	defer close(w.done)
	tick := time.NewTicker(seriesStep)
	defer tick.Stop()
	for {
		if l, ok := w.look(ctx); ok {
			w.seen = append(w.seen, l)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *shadowWatch) look(ctx context.Context) (shadowLook, bool) {
	l := shadowLook{at: time.Now()}
	for i, addr := range w.admin {
		m, err := readMetrics(ctx, addr)
		if err != nil {
			return l, false
		}
		l.ops[i], l.waiting = m[metricOperations], m[metricWaiting] // The target's is the last.
	}
	if id := w.move.Load(); id != 0 {
		l.remaining = remaining(w.on.cache.Snapshot(), id)
	}
	return l, true
}

// wait returns when the watch has ended.
func (w *shadowWatch) wait() { <-w.done }

// series is what was seen, with rates.
func (w *shadowWatch) series(asked time.Time) (all []shadowPoint) {
	for i := 1; i < len(w.seen); i++ {
		a, b := w.seen[i-1], w.seen[i]
		d := b.at.Sub(a.at).Seconds()
		all = append(all, shadowPoint{
			At: b.at.Sub(asked).Seconds(), Source: (b.ops[0] - a.ops[0]) / d, Target: (b.ops[1] - a.ops[1]) / d,
			Waiting: b.waiting, Remaining: b.remaining,
		})
	}
	return all
}
