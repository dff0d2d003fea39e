package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"

	"github.com/ostrodb/ostro/internal/background"
	"github.com/ostrodb/ostro/tenant/extension"
)

// queue is what has to be compiled, a tenant's turn after the other's: who has many modules, or large
// ones, delays others by one of them. Of a tenant one is compiled at a time.
type queue struct {
	mu     sync.Mutex
	filled sync.Cond
	order  []*Shelf // that have some wanted, and none taken
	wanted map[*Shelf][]*edition
	taken  map[*Shelf]bool
	closed bool
}

var errClosed = errors.New("the server stops")

func (q *queue) init() {
	q.filled.L = &q.mu
	q.wanted, q.taken = map[*Shelf][]*edition{}, map[*Shelf]bool{}
}

// add reports false once the queue is closed.
func (q *queue) add(e *edition) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	s := e.shelf
	q.wanted[s] = append(q.wanted[s], e)
	if len(q.wanted[s]) == 1 && !q.taken[s] {
		q.line(s)
	}
	return true
}

func (q *queue) line(s *Shelf) {
	q.order = append(q.order, s)
	q.filled.Signal()
}

// next waits for an edition, and done must follow; nil: the queue is closed and empty.
func (q *queue) next() *edition {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.order) == 0 {
		if q.closed {
			return nil
		}
		q.filled.Wait()
	}
	s := q.order[0]
	q.order = q.order[1:]
	e := q.wanted[s][0]
	q.taken[s] = true
	if rest := q.wanted[s][1:]; len(rest) > 0 {
		q.wanted[s] = rest
	} else {
		delete(q.wanted, s)
	}
	return e
}

// done says that the edition of the shelf's that was taken is compiled: it may have its next turn.
func (q *queue) done(s *Shelf) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.taken, s)
	if len(q.wanted[s]) > 0 {
		q.line(s)
	}
}

// close ends the queue, and returns what nobody will take: of a tenant one of whose modules is being compiled, too, which may go on
// for longer than anybody looks.
func (q *queue) close() (left []*edition) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, all := range q.wanted {
		left = append(left, all...)
	}
	clear(q.wanted)
	q.order = nil
	q.filled.Broadcast()
	return left
}

// compilersMost bounds the memory of compilers on machines with many cores: a module that is made for that takes 410 MB.
const compilersMost = 2

// compilers is how many modules are compiled at a time at each of both desks, and of each of both queues.
func compilers() int { return compilersOf(runtime.NumCPU()) }

func compilersOf(cores int) int { return min(max(cores/2, 1), compilersMost) }

// queueOf is where an edition waits to be compiled. What is compiled quietly stands still while the machine is busy: nobody
// else waits behind it.
func (l *Library) queueOf(e *edition) *queue {
	if e.entry.Bytes > quietBytes {
		return &l.slowly
	}
	return &l.compiling
}

func (l *Library) compileLoop(q *queue) {
	for e := q.next(); e != nil; e = q.next() {
		switch {
		case l.ctx.Err() != nil:
			e.ready(nil, errClosed)
			q.done(e.shelf)
		case e.warm.Load() != nil: // Whoever installed it has brought it.
			e.ready(nil, nil)
			q.done(e.shelf)
		default:
			l.compileNext(q, e)
		}
	}
}

// compileNext has an edition compiled, and returns when it is the next one's turn.
func (l *Library) compileNext(q *queue, e *edition) {
	c := l.begin(func() (*warm, error) { return l.load(e) })
	next := make(chan struct{})
	go func() {
		l.attend(c, func() { close(next) })
		q.done(e.shelf)
	}()
	l.done.Go(func() { l.deliver(c, e) })
	select {
	case <-next:
	case <-l.ctx.Done():
	}
}

// deliver gives an edition what was made for it.
func (l *Library) deliver(c *compilation, e *edition) {
	w, err := c.wait(l.ctx)
	if e.ready(w, err) {
		l.warm.add(e)
	} else if w != nil {
		l.warm.bury(nil, w)
	}
	if err != nil && l.ctx.Err() == nil {
		l.log.Warn("a function cannot be made ready", "tenant", e.shelf.tenant, "module", e.entry.Name, "version", e.entry.Version, "error", err)
	}
}

// load makes an edition's code into something that runs.
func (l *Library) load(e *edition) (*warm, error) {
	code, err := l.opts.Book.Code(l.ctx, e.entry.Sum)
	if err != nil {
		return nil, fmt.Errorf("read the code of module %s: %w", e.entry.Name, err)
	}
	return l.warmUp(e.shelf, code)
}

// quietBytes is from which size on a module is compiled at the lowest priority: that may take seconds.
const quietBytes = 256 << 10

func (l *Library) warmUp(s *Shelf, code []byte) (w *warm, err error) {
	if len(code) > quietBytes {
		background.Quietly(func() { w, err = l.warmNow(s, code) })
		return w, err
	}
	return l.warmNow(s, code)
}

func (l *Library) warmNow(s *Shelf, code []byte) (*warm, error) {
	module, err := l.compile(code)
	if err != nil {
		return nil, err
	}
	if l.ctx.Err() != nil { // Who would account for its memory may be gone.
		return nil, errors.Join(errClosed, module.Close(context.Background()))
	}
	var opts extension.PoolOptions
	if l.opts.Pool != nil {
		opts = l.opts.Pool(s.tenant)
	}
	limits := l.opts.Limits.Extension
	opts.Limits, opts.Clock = limits.Call, &s.clock
	pool, err := module.NewPool(limits, opts)
	if err == nil {
		if err = pool.Warm(1); err == nil {
			return &warm{module, pool}, nil
		}
		pool.Close()
	}
	return nil, errors.Join(err, module.Close(context.Background()))
}

// compile compiles code, or takes it from the cache. A cache that cannot be written, on a disk that is full for
// example, does not keep a module from running: the compiler has it in memory by then.
func (l *Library) compile(code []byte) (*extension.Module, error) {
	r, err := l.engine()
	if err != nil {
		return nil, err
	}
	m, err := r.Compile(l.ctx, code, l.opts.Limits.Extension)
	var file *fs.PathError
	if errors.As(err, &file) {
		l.log.Warn("compiled code cannot be kept", "error", file)
		m, err = r.Compile(l.ctx, code, l.opts.Limits.Extension)
	}
	return m, err
}

// engine begins when it is first needed: who has no functions pays nothing for them.
func (l *Library) engine() (*extension.Runtime, error) {
	l.runtimeOnce.Do(func() {
		l.runtime, l.runtimeErr = extension.NewRuntime(context.Background(), extension.Options{CacheDir: l.opts.CacheDir})
		if l.runtimeErr == nil {
			l.begun.Store(l.runtime)
		}
	})
	return l.runtime, l.runtimeErr
}

// closeRuntime ends what runs and compiles functions, unless one still is: then the end of the process does.
func (l *Library) closeRuntime() {
	compiling := l.running.close() // If there are none, nothing becomes warm any more.
	if idle := l.warm.close(); !idle || compiling > 0 {
		l.log.Warn("functions still run, or are compiled: they end with the process", "compiled", compiling)
		return
	}
	l.runtimeOnce.Do(func() { l.runtimeErr = errClosed })
	if l.runtime != nil {
		_ = l.runtime.Close(context.Background()) // Nothing is left to lose.
	}
}
