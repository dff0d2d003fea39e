package hlog

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/internal/await"
)

func TestSettlingWaitsWhileOthersNeedTheCores(t *testing.T) {
	l, _ := loggedLog(t, 1)
	var calm atomic.Bool
	var asked atomic.Int64
	l.opts.Busy = func() bool {
		asked.Add(1)
		return !calm.Load()
	}
	l.Start()
	appendTo(t, l.Head(0))
	written := func(s *Segment) bool { return s.End() > 0 } // Spares have lower ids at times.
	all := l.Segments()
	s := all[slices.IndexFunc(all, written)]
	l.Head(0).Rotate()
	settled := func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return s.mapping == nil && s.frame != nil
	}
	await.True(t, "settling has asked", func() bool { return asked.Load() > 2 })
	if settled() {
		t.Fatal("it did not wait")
	}
	calm.Store(true)
	await.True(t, "the segment is settled", settled)
}
