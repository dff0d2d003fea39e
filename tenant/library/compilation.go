package library

import (
	"context"
	"sync"
	"time"
)

// compilation is a module that is being compiled. Nothing can end it before its end, for the compiler looks at no context:
// whoever waits can only go without it. So
//
//   - who gives up, or hears that the server stops, goes at once, and what was made is buried when it is there;
//   - one that takes too long runs on by itself, and another one has its turn. Its tenant has no other meanwhile.
type compilation struct {
	over   chan struct{} // closed at its end; then:
	result *warm
	err    error

	mu   sync.Mutex
	gone bool // nobody wants it any more
}

const (
	// compilePatience is how long others wait for a compilation.
	compilePatience = 10 * time.Second
	// overdueMost is how many may run beside those whose turn it is. When there are as many, others wait after all: the
	// memory that they take has a bound, too.
	overdueMost = 4
)

// running counts compilations, and those who install what they made, so that none begins after the end.
type running struct {
	mu      sync.Mutex
	n       int
	closed  bool
	overdue chan struct{} // a place for each one that may be
}

func (r *running) init() { r.overdue = make(chan struct{}, overdueMost) }

func (r *running) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.n++
	return true
}

func (r *running) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n--
}

// close lets none begin any more, and tells how many have not ended.
func (r *running) close() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.n
}

// begin has work make something in the background.
func (l *Library) begin(work func() (*warm, error)) *compilation {
	c := &compilation{over: make(chan struct{})}
	if !l.running.enter() {
		c.err = errClosed
		close(c.over)
		return c
	}
	go func() {
		defer l.running.leave()
		c.end(l, work)
	}()
	return c
}

func (c *compilation) end(l *Library, work func() (*warm, error)) {
	w, err := work()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result, c.err = w, err
	if c.gone {
		l.warm.bury(nil, w)
		c.result = nil
	}
	close(c.over)
}

// wait returns what was made. Who stops waiting gets nothing, now or later.
func (c *compilation) wait(ctx context.Context) (*warm, error) {
	select {
	case <-c.over:
		return c.result, c.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	select {
	case <-c.over: // At the same moment.
		return c.result, c.err
	default:
		return nil, context.Cause(ctx)
	}
}

// attend calls pass when the next one may have its turn, at the end or when it takes too long, and returns at the end.
func (l *Library) attend(c *compilation, pass func()) {
	late := time.NewTimer(compilePatience)
	defer late.Stop()
	select {
	case <-c.over:
		pass()
		return
	case <-late.C:
	}
	select {
	case <-c.over:
		pass()
	case l.running.overdue <- struct{}{}:
		pass()
		<-c.over
		<-l.running.overdue
	}
}
