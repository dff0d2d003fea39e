package library

import (
	"context"
	"slices"
	"sync"
	"time"
)

// warmSet is what is compiled, and what is not wanted any more and still has calls.
type warmSet struct {
	mu       sync.Mutex
	editions map[*edition]struct{}
	graves   []*warm
}

func (s *warmSet) init() { s.editions = map[*edition]struct{}{} }

func (s *warmSet) add(e *edition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.editions[e] = struct{}{}
}

// bury closes what an edition had. Calls that run there go on: their code stays until they have ended. The pool is closed
// without the lock, which all tenants share: that unmaps what instances had. Meanwhile the edition may have become warm again.
func (s *warmSet) bury(e *edition, w *warm) {
	if w != nil {
		w.pool.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e != nil && e.warm.Load() == nil {
		delete(s.editions, e)
	}
	if w != nil {
		s.graves = append(s.graves, w)
	}
}

// clear forgets what has no calls any more.
func (s *warmSet) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.graves = slices.DeleteFunc(s.graves, func(w *warm) bool {
		over := w.pool.Metrics().Instances == 0
		if over {
			_ = w.module.Close(context.Background()) // It has nothing to say.
		}
		return over
	})
}

// idlest lists editions that were not used since a tick, those first that were not for longest.
func (s *warmSet) idlest(since int64) (all []*edition, warm int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.editions {
		if e.used.Load() < since {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *edition) int { return int(a.used.Load() - b.used.Load()) })
	return all, len(s.editions)
}

// count tells how many modules are compiled, and how many instances they have.
func (s *warmSet) count() (modules, instances int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.editions {
		if w := e.warm.Load(); w != nil {
			instances += w.pool.Metrics().Instances
		}
	}
	return len(s.editions), instances
}

// close buries everything, and reports whether no call is left.
func (s *warmSet) close() bool {
	s.mu.Lock()
	var all []*edition
	for e := range s.editions {
		all = append(all, e)
	}
	s.mu.Unlock()
	for _, e := range all {
		s.bury(e, e.cool())
	}
	s.clear()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.graves) == 0
}

const (
	tickEvery = time.Second
	// restTicks is after how long without a call a module keeps one instance only, and may go if there are
	// too many modules.
	restTicks = 5
)

// keep forgets what is not used.
func (l *Library) keep() {
	every := time.NewTicker(tickEvery)
	defer every.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-every.C:
			l.tend(l.tick.Add(1))
			l.trimGrown()
		}
	}
}

func (l *Library) tend(now int64) {
	l.warm.clear()
	idle, warm := l.warm.idlest(now - restTicks)
	longest := now - int64(l.opts.Idle/tickEvery)
	for _, e := range idle {
		w := e.warm.Load()
		switch {
		case w == nil: // It was retired while it was added, or somebody else has just buried it.
			l.warm.bury(e, nil)
			warm--
		case warm > l.opts.Warm || e.used.Load() < longest:
			l.warm.bury(e, e.cool())
			warm--
		default:
			w.pool.Trim(1)
		}
	}
}
