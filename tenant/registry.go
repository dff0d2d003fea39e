package tenant

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant/sched"
)

// Book keeps the catalog.
type Book interface {
	// Read returns the catalog as it is.
	Read(ctx context.Context) (Catalog, error)
	// Edit changes it: what edit does to its argument, or nothing. It may be called again when
	// somebody else was faster.
	Edit(ctx context.Context, edit func(*Catalog) error) error
	// Changed is closed when the catalog is another one than it was at the call.
	Changed() <-chan struct{}
}

const (
	firstDatabase = store.FirstPrivate
	lastDatabase  = store.FirstPrivate + store.MaxPrivate
)

// Registry knows the tenants of a node.
type Registry struct {
	book Book
	st   *store.Store
	log  *slog.Logger

	sched  *sched.Scheduler
	share  *sched.Share // the operator's
	memory Memory       // the operator's

	mu       sync.Mutex // for who changes:
	accounts atomic.Pointer[map[string]*Account]
	catalog  atomic.Pointer[Catalog] // as they were made from it
	sweep    chan struct{}
	changed  chan struct{}

	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup
}

// Open reads the book, makes the tenants' databases, and follows the book from then on. Functions of the tenants take turns
// at a scheduler of the registry's.
func Open(ctx context.Context, book Book, st *store.Store, log *slog.Logger, turns sched.Options) (*Registry, error) {
	r := &Registry{book: book, st: st, log: log, sweep: make(chan struct{}, 1), changed: make(chan struct{}), sched: sched.New(turns)}
	r.share = r.sched.NewShare(Operator, sched.Limits{})
	r.accounts.Store(&map[string]*Account{})
	r.ctx, r.stop = context.WithCancel(context.Background())
	changed := book.Changed()
	if err := r.refresh(ctx); err != nil {
		r.stop()
		r.sched.Close()
		return nil, err
	}
	r.done.Go(func() { r.follow(changed) })
	r.done.Go(r.sweepLoop)
	return r, nil
}

// Close ends functions that still run, and stops following the book. It comes after the front doors' end, and before the store's.
func (r *Registry) Close() {
	r.stop()
	r.sched.Close()
	r.done.Wait()
}

// followPause is how long the registry waits after it could not read its book.
const followPause = time.Second

func (r *Registry) follow(changed <-chan struct{}) {
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-changed:
		}
		changed = r.book.Changed()
		r.until("the tenants could not be read; it is tried again", func() error { return r.refresh(r.ctx) })
	}
}

// sweepLoop empties what deleted tenants have left, which may take its time.
func (r *Registry) sweepLoop() {
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.sweep:
		case <-r.st.Brought(): // A node that has not emptied them yet may have sent more.
		}
		r.until("a deleted tenant's data could not be deleted; it is tried again", r.dropGone)
	}
}

// until does something until it works.
func (r *Registry) until(otherwise string, f func() error) {
	for err := f(); err != nil && r.ctx.Err() == nil; err = f() {
		r.log.Warn(otherwise, "error", err)
		select {
		case <-r.ctx.Done():
		case <-time.After(followPause):
		}
	}
}

// refresh makes accounts of what the book says. Limits hold when it returns, for what there was before, too.
func (r *Registry) refresh(ctx context.Context) error {
	if err := r.renew(ctx); err != nil {
		return err
	}
	for _, a := range *r.accounts.Load() {
		a.memory.shrink()
	}
	return nil
}

func (r *Registry) renew(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.book.Read(ctx)
	if err != nil {
		return fmt.Errorf("read the tenants: %w", err)
	}
	was := *r.accounts.Load()
	next := make(map[string]*Account, len(c.Tenants))
	var databases []int
	for name, t := range c.Tenants {
		a := was[name]
		if a == nil || a.Tenant().First != t.First { // Another one of the same name.
			a = &Account{weigh: r.weigh, share: r.sched.NewShare(name, sched.Limits{})}
		}
		a.share.SetLimit(t.Limits.Cores())
		a.memory.become(&t)
		for n := range t.Databases {
			databases = append(databases, t.First+n)
		}
		a.tenant.Store(&t)
		next[name] = a
	}
	if err := r.st.OpenPrivate(databases...); err != nil {
		return fmt.Errorf("make the tenants' databases: %w", err)
	}
	r.accounts.Store(&next)
	for name, a := range was {
		if next[name] != a {
			a.gone.Store(true)
			a.share.Close()
		}
	}
	r.catalog.Store(&c)
	close(r.changed)
	r.changed = make(chan struct{})
	select {
	case r.sweep <- struct{}{}:
	default:
	}
	return nil
}

// dropGone empties what deleted tenants have left. A database that is not given out yet, by what the
// catalog says, is one of a tenant that this node will hear of.
func (r *Registry) dropGone() error {
	c := r.catalog.Load()
	theirs := map[int]bool{}
	for _, t := range c.Tenants {
		for n := range t.Databases {
			theirs[t.First+n] = true
		}
	}
	for _, db := range r.st.Private() {
		if db >= c.Next || theirs[db] {
			continue
		}
		if err := r.st.DropPrivate(r.ctx, db); err != nil {
			return fmt.Errorf("empty database %d of a tenant that was deleted: %w", db, err)
		}
	}
	return nil
}

func (r *Registry) weigh(t *Tenant) (bytes int64) {
	for n := range t.Databases {
		bytes += r.st.Bytes(t.First + n)
	}
	return bytes
}

// Authenticate finds the account of who knows its password. It takes as long for a name that nobody has.
func (r *Registry) Authenticate(name, password []byte) (*Account, bool) {
	a, secret := (*r.accounts.Load())[string(name)], &nobody
	if a != nil {
		secret = &a.Tenant().Secret
	}
	if !secret.Matches(password) {
		return nil, false
	}
	return a, a != nil
}

var nobody = NewSecret(NewPassword())

// Account finds a tenant's account; nil if there is no such tenant.
func (r *Registry) Account(name string) *Account { return (*r.accounts.Load())[name] }

// Changed is closed when this node has heard of a change since the call.
func (r *Registry) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// Deleted tells that a database was a tenant's that is no more, by what this node has heard.
func (r *Registry) Deleted(database int) bool {
	c := r.catalog.Load()
	for _, t := range c.Tenants {
		if t.First <= database && database < t.First+t.Databases {
			return false
		}
	}
	return database >= firstDatabase && database < c.Next
}

// Edit changes the catalog, and returns when this node has taken the change over.
func (r *Registry) Edit(ctx context.Context, edit func(*Catalog) error) error {
	if err := r.book.Edit(ctx, edit); err != nil {
		return err
	}
	if err := r.refresh(ctx); err != nil {
		return fmt.Errorf("the change is made, but this node has not taken it over yet: %w", err)
	}
	return nil
}

// Usage tells what the tenants have used of this node, in no order.
func (r *Registry) Usage() []Usage {
	var all []Usage
	for _, a := range *r.accounts.Load() {
		t := a.Tenant()
		u := Usage{
			Name: t.Name, Databases: t.Databases, Created: t.Created, Limits: t.Limits, Bytes: r.weigh(t), Results: a.results.Bytes(), Connections: a.connections.Load(), Waiting: a.waiting.Load(), Input: a.input.Load(), Unread: a.unread.Load(),
			Operations: a.used.operations.Load(), Refused: a.used.refused.Load(),
			BytesIn: a.used.bytesIn.Load(), BytesOut: a.used.bytesOut.Load(),
		}
		u.functions(a.share, &a.memory)
		for n := range t.Databases {
			keys, _ := r.st.Count(t.First + n)
			u.Keys += keys
		}
		all = append(all, u)
	}
	return all
}
