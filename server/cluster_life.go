package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/balance"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
	"github.com/ostrodb/ostro/server/session"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/library"
)

// life is a node's time with one log: from when it joins until others have taken
// the log over, or the node stops.
//
// Its lease may end and begin again meanwhile. As long as nobody took the log over
// nothing has happened but that clients were sent away for a while.
type life struct {
	*host
	id     identity
	log    *slog.Logger
	gate   *gate
	heat   *balance.Meter // what clients do, by slot
	ledger ledger

	primary    atomic.Pointer[replica.Primary]
	store      *store.Store
	shelf      *migrate.Shelf // the store, to targets of migrations
	yields     yields
	departures departures
	tenants    *tenant.Registry
	functions  *library.Library
	redis      *redis.Server
	native     atomic.Pointer[session.Server]
	opened     chan struct{} // closed once the store is there
	begun      chan struct{} // closed once it serves, or has failed to: nothing of the above changes from here on

	ctx    context.Context // ends with the life; its cause is why
	cancel context.CancelCauseFunc
	ended  <-chan struct{}
	tasks  sync.WaitGroup
	driver atomic.Pointer[migrate.Driver]
	closed sync.Once
	heir   sync.Mutex // held by who replays: of two leases in a row, one
	taken  takings    // what was replayed and lacks copies
	// taking is held while an import of places begins, or an arrival: each knows of the other.
	taking  sync.Mutex
	keeping sync.Mutex // see keepReturned
	// adoptArrivals ends what still comes from the sources of migrations to these places, and returns once
	// all that came is as safe as any write. It is set before the store counts as opened; nil: nothing comes.
	adoptArrivals func(ctx context.Context, ranges view.Ranges) error
	// quietCopies returns when nothing of these places is copied to this node any more by a migration that has ended.
	quietCopies func(ctx context.Context, ranges view.Ranges) error
}

var (
	errRetired = errors.New("others have taken over this node's log")
	errStopped = errors.New("the node stops")
)

// begin joins the cluster and serves. It waits for the cluster's first map if need be. A log that
// others take over meanwhile is set aside for another one.
func (h *host) begin() (*life, error) {
	for {
		l, err := h.beginOnce()
		if !errors.Is(err, errRetired) {
			return l, err
		}
	}
}

func (h *host) beginOnce() (*life, error) {
	if err := h.settleLog(); err != nil {
		return nil, err
	}
	l := &life{host: h, id: h.id, log: h.log, heat: balance.NewMeter()}
	l.opened, l.begun = make(chan struct{}), make(chan struct{})
	l.ctx, l.cancel = context.WithCancelCause(h.ctx)
	l.ended = l.ctx.Done()
	l.gate = newGate(h.self, h.cache.Snapshot())
	err := l.start()
	close(l.begun)
	if err != nil {
		l.cancel(err)
		l.retire()
		return nil, err
	}
	return l, nil
}

// settleLog makes sure that the log is one that this node may go on with.
func (h *host) settleLog() error {
	seen, err := h.meta.Read(h.ctx)
	if err != nil || !seen.Logs[h.id.Log].Retired {
		return err
	}
	was := h.id.Log
	if h.id, err = h.id.setAside(); err != nil {
		return err
	}
	h.log.Warn("others have taken over what this node had: it was set aside, and the node begins with an empty log",
		"retired", fmt.Sprintf("%016x", uint64(was)), "log", fmt.Sprintf("%016x", uint64(h.id.Log)))
	return nil
}

func (l *life) start() error {
	l.host.node.enter("joining")
	m, err := l.join(true)
	if err != nil {
		return err
	}
	l.life.Store(l)
	if err := l.adopt(m); err != nil {
		return err
	}
	l.tasks.Go(l.keep)
	l.host.node.enter("waiting for the cluster's first nodes")
	if _, err := l.cache.Wait(l.ctx, func(s *meta.Snapshot) bool { return !s.Map.IsZero() }); err != nil {
		return l.why(err)
	}
	l.host.node.enter("recovering")
	if err := l.openStore(); err != nil {
		return l.why(err)
	}
	l.shelf = migrate.NewShelf(l.store)
	driver := l.newDriver()
	l.adoptArrivals, l.quietCopies = driver.Adopt, driver.Quiet
	close(l.opened)
	l.keepReturned()
	if err := l.openDoors(); err != nil {
		return err
	}
	l.driver.Store(driver)
	l.tasks.Go(func() { driver.Run(l.ctx) })
	l.tasks.Go(func() { l.retract(l.ctx) })
	return nil
}

// why is the reason for which the life has ended, if it has, or else err.
func (l *life) why(err error) error {
	if cause := context.Cause(l.ctx); cause != nil {
		return cause
	}
	return err
}

// leavePatience is how long etcd has for the end of a lease that is given back. Else it ends by itself.
const leavePatience = 2 * time.Second

// patience is how long a node waits for the lease of its former self to end.
const patience = 10 * time.Second

// join makes the node a member. While its former self still has a lease, or etcd has other things to do, it waits,
// for a while if it is the first time; while others have to take over what its lost disk had, as long as
// that takes.
func (l *life) join(first bool) (*meta.Member, error) {
	began, told := time.Now(), ""
	for {
		m, err := l.meta.Join(l.ctx, l.described())
		switch {
		case err == nil:
			return m, nil
		case l.ctx.Err() != nil:
			return nil, l.why(err)
		}
		if seen, e := l.meta.Read(l.ctx); e == nil && seen.Logs[l.id.Log].Retired {
			return nil, errRetired
		}
		late := !errors.Is(err, meta.ErrPresent) && !meta.Passing(err) || time.Since(began) > patience+2*l.settings.Lease()
		if first && late && !errors.Is(err, meta.ErrLogGone) {
			return nil, err
		}
		if told != err.Error() {
			told = err.Error()
			l.log.Info("the node waits to join", "why", err)
		}
		l.pause(100 * time.Millisecond)
	}
}

// adopt serves as a member: not before the map is as new as the membership. It may be older than what was read
// afterwards, for good: etcd's revision rises by what others write there, too, of which this cluster's watch tells nothing.
func (l *life) adopt(m *meta.Member) error {
	s, err := l.cache.Wait(l.ctx, func(s *meta.Snapshot) bool { return s.Revision >= m.Token() })
	if err != nil {
		last, cancel := context.WithTimeout(context.Background(), leavePatience)
		defer cancel()
		_ = m.Lease.Close(last)
		return l.why(err)
	}
	l.gate.show(s)
	l.gate.member.Store(m)
	l.ledger.member.Store(m)
	l.gate.poke()
	l.hold(m)
	l.log.Info("the node is in the cluster", "node", m.Node.ID, "log", fmt.Sprintf("%016x", uint64(m.Node.Log)), "lease", m.Lease.TTL().String())
	return nil
}

// keep joins again whenever the lease was lost, until others have taken the log over.
func (l *life) keep() {
	for {
		m := l.gate.member.Load()
		select {
		case <-l.ctx.Done():
			return
		case <-m.Lease.Lost():
		}
		l.gate.poke()
		if l.ctx.Err() != nil {
			return
		}
		l.log.Warn("this node's lease has ended: it answers nothing until it has joined again")
		next, err := l.join(false)
		if err == nil {
			err = l.adopt(next)
		}
		if err != nil {
			l.cancel(err)
			return
		}
	}
}

// follow acts on new metadata.
func (l *life) follow(s *meta.Snapshot) {
	l.gate.show(s)
	l.endDepartures(s)
	l.keepReturned()
}

// keepReturned has copies of cleaned segments stay while this node returns what it got: the source reads its log then.
func (l *life) keepReturned() {
	select {
	case <-l.opened:
		l.keeping.Lock() // Whoever comes last has the newest snapshot.
		defer l.keeping.Unlock()
		l.store.Keep(returns(l.cache.Snapshot(), l.self))
	default:
	}
}

// openStore recovers the log and makes it a replicated one.
func (l *life) openStore() error {
	has, err := l.id.hasLog()
	if err == nil && !has {
		err = l.bootedAs("") // Whoever is interrupted begins again.
	}
	if err == nil && l.id.rebooted() {
		if err = l.pullMissing(l.ctx); err == nil {
			err = l.bootedAs(bootID())
		}
	}
	if err != nil {
		return err
	}
	n := l.node
	o := n.cfg.storeOptions(l.memory, n.loops(), n.log, n.report)
	o.Dir, o.LogID, o.SegmentBytes, o.Cluster = l.id.logPath(), l.id.Log, l.settings.SegmentBytes, true
	o.Databases = l.databases()
	s := l.cache.Snapshot()
	o.Floors = view.Floors(s.Logs[l.id.Log].Floors)
	o.Owned = s.Holds(l.id.Node).Spans()
	o.Arriving = migrate.Ranges(s.Unsettled(l.id.Node))
	for _, m := range s.Outgoing(l.id.Node) {
		o.Given = append(o.Given, migrate.Ranges(m.Ranges)...)
	}
	o.Serves, o.Expires = l.gate.serves, l.gate.expires
	o.MayUpload, o.Elsewhere, o.Owners = l.gate.Alive, l.copyOf, l.owners
	if o.Replicator, err = l.newPrimary(); err != nil {
		return err
	}
	opened, err := store.Open(o)
	if err != nil {
		return err
	}
	l.store = opened
	n.store.Store(opened)
	return nil
}

// bootedAs notes for which run of the machine the log is whole.
func (l *life) bootedAs(boot string) error {
	l.id.Boot = boot
	l.host.id.Boot = boot
	return l.id.write()
}

// openDoors lets clients in.
func (l *life) openDoors() error {
	n := l.node
	if err := l.openTenants(); err != nil {
		return l.why(err)
	}
	if err := l.openFunctions(); err != nil {
		return l.why(err)
	}
	if n.cfg.Native {
		native, err := session.New(l.store, session.Options{
			Gate: nativeGate{l.gate}, Check: n.cfg.ownershipCheck(), Access: n.access,
			Tenants: l.tenants, Functions: l.functions, Merges: n.merges, Heat: l.heat, Node: string(l.id.Node), MaxSessions: n.cfg.MaxClients, Logger: n.log.With("part", "session"),
		})
		if err != nil {
			return err
		}
		l.native.Store(native)
		n.native.Store(native)
	}
	c := n.cfg.redisConfig(n.log)
	c.Databases = l.store.Options().Databases
	c.Cluster, c.Proxy, c.Heat, c.Tenants, c.Functions = redisGate{l.gate, l.slots}, n.cfg.Proxy, l.heat, l.tenants, l.functions
	front, err := redis.New(l.store, c)
	if err != nil {
		return err
	}
	tuneProcessors(n.loops())
	if err := front.Start(); err != nil {
		return err
	}
	l.redis = front
	n.redis.Store(front)
	l.tasks.Go(func() { l.relayShutdown(front) })
	return nil
}

// relayShutdown tells the node that a client wants it to stop.
func (l *life) relayShutdown(front *redis.Server) {
	select {
	case <-front.ShutdownRequested():
		l.node.requestShutdown()
	case <-l.ended:
	}
}

// close ends the life: what was received is answered, if it may be; the log is whole; then
// the lease is given back. save is whether the store shall be quick to open again.
func (l *life) close(ctx context.Context, save bool) (err error) {
	l.closed.Do(func() {
		clients, cancel := forClients(ctx)
		defer cancel()
		err = l.closeOnce(ctx, clients, save)
	})
	return err
}

// retirePatience is how long clients have to read what they were answered before the log was over.
const retirePatience = time.Second

// retire closes a life whose log is over. Nobody can be told anything new of it, so nobody is waited for: the node has to begin another.
func (l *life) retire() {
	l.closed.Do(func() {
		clients, cancel := context.WithTimeout(context.Background(), retirePatience)
		defer cancel()
		if err := l.closeOnce(context.Background(), clients, false); err != nil {
			l.log.Warn("the node's log that is over was not closed in good order", "why", err)
		}
	})
}

// closeOnce ends all. Clients that have no answer when theirs is over are cut off.
func (l *life) closeOnce(ctx, clients context.Context, save bool) error {
	l.cancel(errStopped)
	<-l.begun // A node may be stopped while it begins anew.
	var errs []error
	if l.functions != nil {
		l.functions.Halt()
	}
	if l.redis != nil {
		if err := l.redis.Shutdown(clients); err != nil {
			l.log.Warn("clients were cut off", "err", err)
		}
	}
	if native := l.native.Load(); native != nil {
		if err := native.Shutdown(clients); err != nil {
			l.log.Warn("native clients were cut off", "err", err)
		}
	}
	if l.functions != nil {
		l.functions.Close()
	}
	if l.tenants != nil {
		l.tenants.Close()
	}
	l.tasks.Wait() // Coordinator and heir: nothing is decided or imported from here on.
	l.life.CompareAndSwap(l, nil)
	if l.shelf != nil {
		l.shelf.Close()
	}
	if l.store != nil {
		closeStore := l.store.CloseUnsaved
		if save && l.gate.Alive() {
			closeStore = l.store.Close
		}
		l.node.store.CompareAndSwap(l.store, nil)
		err := within(ctx, closeStore)
		if errors.Is(context.Cause(l.ctx), errRetired) {
			err = nil // What was not copied belongs to nobody.
		}
		errs = append(errs, err)
	}
	if m := l.gate.member.Load(); m != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), leavePatience)
		defer cancel()
		if err := m.Leave(last); err != nil {
			l.log.Warn("the cluster was not told that this node ends", "why", err)
		}
	}
	return errors.Join(errs...)
}
