package library

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/tenant/extension"
)

// edition is a version of a module on this node.
//
//	cold ── prepare ──▶ queued ── compileLoop ──▶ warm ── keep ──▶ cold
//	any of them ── retire ──▶ retired, for ever
type edition struct {
	shelf     *Shelf
	entry     Entry
	functions map[string]*Function
	diary     *diary

	warm    atomic.Pointer[warm]
	used    atomic.Int64 // the tick of its last use
	retired atomic.Bool

	mu      sync.Mutex // for who changes the above:
	queued  bool
	waiting []func(error)
}

// warm is what it takes to run calls.
type warm struct {
	module *extension.Module
	pool   *extension.Pool
}

func (e *Entry) same(o *Entry) bool {
	return e.Version == o.Version && e.Sum == o.Sum && e.Installed.Equal(o.Installed) && slices.Equal(e.Functions, o.Functions)
}

func (s *Shelf) newEdition(entry Entry) *edition {
	e := &edition{shelf: s, entry: entry, functions: make(map[string]*Function, len(entry.Functions)), diary: s.diary(entry.Name)}
	for _, name := range entry.Functions {
		e.functions[name] = &Function{Name: name, Module: entry.Name, Version: entry.Version, edition: e, tally: e.diary.tally(name)}
	}
	return e
}

// prepare has the edition compiled, if it is not.
func (e *edition) prepare(done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	e.mu.Lock()
	switch {
	case e.retired.Load():
		e.mu.Unlock()
		done(ErrGone)
		return
	case e.warm.Load() != nil:
		e.mu.Unlock()
		done(nil)
		return
	}
	e.waiting = append(e.waiting, done)
	first := !e.queued
	e.queued = true
	e.mu.Unlock()
	if first && !e.shelf.lib.queueOf(e).add(e) {
		e.ready(nil, errClosed)
	}
}

// ready ends a preparation, and tells all who wait. It reports whether the edition has taken what was made.
func (e *edition) ready(w *warm, err error) (taken bool) {
	e.mu.Lock()
	if e.retired.Load() {
		err = ErrGone
	}
	if taken = err == nil && w != nil && e.warm.Load() == nil; taken {
		e.used.Store(e.shelf.lib.tick.Load())
		e.warm.Store(w)
	}
	waiting := e.waiting
	e.waiting, e.queued = nil, false
	e.mu.Unlock()
	for _, done := range waiting {
		done(err)
	}
	return taken
}

// cool takes the pool away, if there is one. Calls that run there go on.
func (e *edition) cool() *warm {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.warm.Swap(nil)
}

// retire ends the edition: another one is in its place, or none.
func (e *edition) retire() {
	e.mu.Lock()
	e.retired.Store(true)
	w := e.warm.Swap(nil)
	e.mu.Unlock()
	e.shelf.lib.warm.bury(e, w)
}
