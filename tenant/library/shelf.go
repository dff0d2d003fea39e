package library

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/ostrodb/ostro/tenant/extension"
)

// Shelf is what a tenant has installed, as this node knows it. Whoever looks something up
// needs no lock: what changes is replaced as a whole.
type Shelf struct {
	lib    *Library
	owner  Owner
	tenant string

	content  atomic.Pointer[content]
	revision int64             // of the page; library.mu
	diaries  map[string]*diary // by module; library.mu
	past     Counts            // of modules that were deleted; library.mu
	runs     runs
	clock    extension.Clock
	own      desk          // one of its installations compiles at a time
	effort   effort        // that they took of late
	telling  chan struct{} // full: somebody who asks for much is being answered
	lent     atomic.Bool   // somebody has its code, and has not read it all yet
	restored atomic.Bool   // somebody brings all of its code
}

// content never changes.
type content struct {
	functions map[string]*Function
	editions  map[string]*edition // by module
}

func newShelf(l *Library, o Owner, name string) *Shelf {
	s := &Shelf{lib: l, owner: o, tenant: name, diaries: map[string]*diary{}, own: desk{free: 1}, telling: make(chan struct{}, 1)}
	s.content.Store(&content{})
	return s
}

// Tenant is whose it is.
func (s *Shelf) Tenant() string { return s.tenant }

// Find looks a function up; nil: there is none.
func (s *Shelf) Find(name []byte) *Function { return s.content.Load().functions[string(name)] }

// set makes the shelf what the page says. What was in use and is replaced is made ready again.
func (s *Shelf) set(p *Page) {
	if p.Revision < s.revision {
		return // A later one was here first.
	}
	s.revision = p.Revision
	was := s.content.Load()
	next := &content{functions: map[string]*Function{}, editions: map[string]*edition{}}
	var again []*edition
	for name, entry := range p.Modules {
		e := was.editions[name]
		if e == nil || !e.entry.same(&entry) {
			fresh := s.newEdition(entry)
			if e != nil && e.warm.Load() != nil {
				again = append(again, fresh)
			}
			e = fresh
		}
		next.editions[name] = e
		maps.Copy(next.functions, e.functions)
	}
	s.content.Store(next)
	for name, e := range was.editions {
		if next.editions[name] != e {
			e.retire()
		}
		if next.editions[name] == nil {
			past := s.diaries[name].end()
			s.past.Add(&past)
			delete(s.diaries, name)
		}
	}
	for _, e := range again {
		e.prepare(nil)
	}
}

// diary finds what is written about a module, whichever version it is.
func (s *Shelf) diary(module string) *diary {
	d := s.diaries[module]
	if d == nil {
		d = newDiary(s.lib)
		s.diaries[module] = d
	}
	return d
}

// Entries lists what is installed, in order.
func (s *Shelf) Entries() []Entry {
	c := s.content.Load()
	all := make([]Entry, 0, len(c.editions))
	for _, name := range slices.Sorted(maps.Keys(c.editions)) {
		all = append(all, c.editions[name].entry)
	}
	return all
}

// Tell runs what makes a long answer, one of the tenant's at a time: all of them together take one core at most.
func (s *Shelf) Tell(ctx context.Context, tell func() error) error {
	select {
	case s.telling <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("too many ask at the same time what is installed: try again (%w)", ctx.Err())
	}
	defer func() { <-s.telling }()
	return tell()
}

// Lend tells whether a client of the tenant's may be sent code now: one at a time, until it has read it all and TakeBack is
// called. Without it 48 clients that asked for 60 MB each and read nothing took 10 GB.
func (s *Shelf) Lend() bool { return s.lent.CompareAndSwap(false, true) }

// TakeBack ends what Lend began.
func (s *Shelf) TakeBack() { s.lent.Store(false) }

// Restore tells whether a client of the tenant's may bring a dump now: one at a time, until Restored is called. Each is a copy
// of up to all code that a tenant may have, whether its client is still there or not.
func (s *Shelf) Restore() bool { return s.restored.CompareAndSwap(false, true) }

// Restored ends what Restore began.
func (s *Shelf) Restored() { s.restored.Store(false) }

// Function is a function of a module's version.
type Function struct {
	Name    string
	Module  string
	Version int
	// Habit is for whoever calls: what it remembers about calls of this version. The zero value is a function that was
	// never called.
	Habit atomic.Uint64

	edition *edition
	tally   *tally
}

// Pool is where its calls run. ErrCold: there is none now. A pool's extension.ErrClosed says the same of one that was
// there a moment ago.
func (f *Function) Pool() (*extension.Pool, error) {
	e := f.edition
	w := e.warm.Load()
	if w == nil {
		if e.retired.Load() {
			return nil, ErrGone
		}
		return nil, ErrCold
	}
	if now := e.shelf.lib.tick.Load(); e.used.Load() != now {
		e.used.Store(now)
	}
	return w.pool, nil
}

// Prepare makes a pool in the background and calls done from there, or at once if there is one. The error says why
// there can be none; ErrGone: find the function again.
func (f *Function) Prepare(done func(error)) { f.edition.prepare(done) }
