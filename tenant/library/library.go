// Package library keeps the functions that tenants have installed: modules under names, with
// versions, and the pools that their calls run on.
//
//	Book ──── Page ───▶ Library ───▶ Shelf ───▶ Function ───▶ extension.Pool
//	(files, or etcd)    of a tenant  a tenant's    by name       while it is used
//
// Invariants:
//   - A Shelf leads to the functions of one tenant and to no others'.
//   - Of a module one version is found at a time; it changes at one moment. Calls that run
//     go on with the version that they began with.
//   - The code is kept once, whoever has installed it, as long as somebody has.
//   - A module is compiled when it is first called, or by whoever installs it, and forgotten
//     when it was not called for long: what is installed costs little.
package library

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/extension"
)

// Options are those of a Library.
type Options struct {
	Book   Book
	Limits Limits // zero: DefaultLimits
	// CacheDir keeps compiled code. Whoever can write there can run code in this process. Empty: nothing is kept.
	CacheDir string
	// TrimBytes is after how many bytes more the cache is rid of what is of no installed module. 0: 64 MiB.
	TrimBytes int64
	// Keep is told then which code is installed, by whoever has copies of others. nil: nobody has.
	Keep func(installed func(Sum) bool)
	// Gone tells that a tenant was deleted: what it has installed goes, too. nil: nobody ever is.
	Gone func(Owner) bool
	// Changed is closed when others may be gone than at the call. nil: that never changes.
	Changed func() <-chan struct{}
	// Pool is what a tenant's pools are made with. nil: the defaults. Its Limits are ignored.
	Pool func(tenant string) extension.PoolOptions
	// Warm is how many modules are compiled at a time, beyond which those go that were not used for
	// longest. 0: 4096.
	Warm int
	// Idle is after how long without a call a module is compiled no more. 0: 10 minutes.
	Idle   time.Duration
	Logger *slog.Logger
}

// Limits bound what can be installed.
type Limits struct {
	Extension extension.Limits // of a module and its calls
	Modules   int              // of a tenant
	CodeBytes int64            // of a tenant
}

// DefaultLimits are for those who set no others.
func DefaultLimits() Limits {
	l := Limits{Extension: extension.DefaultLimits(), Modules: 1000, CodeBytes: 64 << 20}
	l.Extension.Module.ModuleBytes = 4 << 20
	return l
}

// Library has the functions of all tenants on a node.
type Library struct {
	opts Options
	log  *slog.Logger

	mu      sync.Mutex
	shelves map[Owner]*Shelf

	runtimeOnce sync.Once
	runtime     *extension.Runtime
	runtimeErr  error
	begun       atomic.Pointer[extension.Runtime] // the runtime, once it is there
	trimmed     atomic.Bool                       // the cache was, since the start

	compiling queue
	slowly    queue // modules whose compilation is quiet, and may take long
	desk      desk  // of installations
	large     desk  // of those that may take long
	running   running
	warm      warmSet
	logged    atomic.Int64 // bytes that logs hold
	tick      atomic.Int64 // seconds since the start, about

	ctx  context.Context
	stop context.CancelCauseFunc // its cause is errClosed
	done sync.WaitGroup

	closed sync.Once
}

// Open reads the book and follows it from then on.
func Open(ctx context.Context, opts Options) (*Library, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Limits.Modules == 0 {
		opts.Limits = DefaultLimits()
	}
	if opts.Warm == 0 {
		opts.Warm = 4096
	}
	if opts.TrimBytes == 0 {
		opts.TrimBytes = trimBytes
	}
	if opts.Idle == 0 {
		opts.Idle = 10 * time.Minute
	}
	l := &Library{opts: opts, log: opts.Logger, shelves: map[Owner]*Shelf{}}
	l.desk.free, l.large.free = compilers(), compilers()
	l.compiling.init()
	l.slowly.init()
	l.warm.init()
	l.running.init()
	pages, asOf, err := opts.Book.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the installed functions: %w", err)
	}
	l.ctx, l.stop = context.WithCancelCause(context.Background())
	l.take(pages, asOf)
	l.done.Go(func() { opts.Book.Follow(l.ctx, l.take) })
	l.done.Go(l.keep)
	l.done.Go(l.sweepLoop)
	if len(pages) > 0 {
		l.done.Go(func() { _, _ = l.engine() }) // A first call need not wait for it, and hears of its error.
	}
	for range compilers() {
		l.done.Go(func() { l.compileLoop(&l.compiling) })
		l.done.Go(func() { l.compileLoop(&l.slowly) })
	}
	return l, nil
}

// Halt is the beginning of the end: who installs, or waits for a function to be compiled, hears that the server stops, for
// that may take longer than a stop. Calls of what is compiled go on.
func (l *Library) Halt() {
	l.stop(errClosed)
	for _, e := range append(l.compiling.close(), l.slowly.close()...) {
		e.ready(nil, errClosed)
	}
}

// Close ends the library when no call begins any more. It waits for no compiler.
func (l *Library) Close() {
	l.closed.Do(func() {
		l.Halt()
		l.done.Wait()
		l.closeRuntime()
	})
}

// Shelf is what a tenant has; nil is the operator. It is never nil, and stays the tenant's as
// long as there is one.
func (l *Library) Shelf(a *tenant.Account) *Shelf {
	if a == nil {
		return l.shelf(Operator, tenant.Operator)
	}
	t := a.Tenant()
	return l.shelf(Owner(t.First), t.Name)
}

func (l *Library) shelf(o Owner, name string) *Shelf {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shelfLocked(o, name)
}

func (l *Library) shelfLocked(o Owner, name string) *Shelf {
	s := l.shelves[o]
	if s == nil {
		s = newShelf(l, o, name)
		l.shelves[o] = s
	}
	return s
}

// take makes the shelves what pages say. With asOf there were no others at that revision.
func (l *Library) take(pages []Page, asOf int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := map[Owner]bool{}
	for i := range pages {
		p := &pages[i]
		seen[p.Owner] = true
		if len(p.Modules) > 0 || l.shelves[p.Owner] != nil {
			l.shelfLocked(p.Owner, p.Tenant).set(p)
		}
	}
	if asOf == 0 {
		return
	}
	for o, s := range l.shelves {
		if !seen[o] {
			s.set(&Page{Owner: o, Tenant: s.tenant, Revision: asOf})
		}
	}
}

// What callers decide by.
var (
	// ErrCold is a function that is not compiled now: Prepare, and ask again.
	ErrCold = errors.New("the function is not ready yet")
	// ErrGone is a function that was deleted or replaced: find it again.
	ErrGone = errors.New("the function was deleted or replaced")
)
