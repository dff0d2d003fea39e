package hlog

import (
	"sync"
	"sync/atomic"
)

// chores is background work that waits for no one. Actions that epochs release
// run on whatever worker passes by, so they only hand their work over here.
type chores struct {
	mu    sync.Mutex
	wake  chan struct{}
	queue []func()
	left  atomic.Int64
}

func (c *chores) add(f func()) {
	c.left.Add(1)
	c.mu.Lock()
	c.queue = append(c.queue, f)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *chores) take() []func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queue
	c.queue = nil
	return q
}

// run does what is queued, and tells how much that was.
func (c *chores) run() int {
	q := c.take()
	for _, f := range q {
		f()
	}
	c.left.Add(-int64(len(q)))
	return len(q)
}

// Idle tells whether no background chore is waiting or under way.
func (l *Log) Idle() bool { return l.chores.left.Load() == 0 }

// afterGuards runs f in the background once every guard of now has passed.
func (l *Log) afterGuards(f func()) {
	l.opts.Epoch.Defer(func() { l.chores.add(f) })
}

// choreLoop does chores until the log closes.
func (l *Log) choreLoop() {
	for {
		select {
		case <-l.stop:
			return
		case <-l.chores.wake:
			l.chores.run()
		}
	}
}
