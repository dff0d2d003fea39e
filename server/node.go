// Package server builds a node from its parts: the engine, the Redis front
// door and the admin port. It also holds the one Config that an operator
// writes; the parts have options of their own and know nothing of it.
//
//	Config ── Load: defaults < YAML file < environment < flags
//	   │
//	 Start ── admin port ── store.Open (recovery) ── Redis port ── serving
//	   │
//	 Stop  ── Redis port closes ── store flushes and closes ── admin port
//
// Invariants:
//   - The Redis port opens only once recovery is done, and closes before the
//     store does: no command ever meets half a store.
//   - Parts are stopped in the reverse order of their start, also when a later
//     one fails to start.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/admin"
	"github.com/ostrodb/ostro/server/redis"
	"github.com/ostrodb/ostro/server/session"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/library"
)

// Node is a running server.
type Node struct {
	cfg      Config
	log      *slog.Logger
	progress func(store.Progress)
	merges   map[string]session.Merge // of native clients
	started  time.Time

	phase    atomic.Pointer[admin.Phase]
	stopping atomic.Bool
	store    atomic.Pointer[store.Store] // set once recovery is done
	redis    atomic.Pointer[redis.Server]
	// native is nil if the door is off.
	native  atomic.Pointer[session.Server]
	tenants atomic.Pointer[tenant.Registry] // nil before recovery is done
	// functions is nil before recovery is done.
	functions atomic.Pointer[library.Library]
	admin     *admin.Server // nil: off

	anyAdminPort bool

	cluster      *host         // nil: a server on its own
	shutdown     chan struct{} // of a cluster's node, whose front doors come and go
	shutdownOnce sync.Once
	failure      atomic.Pointer[error] // why it must stop by itself
}

// Option is what only Go code can express about a node.
type Option func(*Node)

// WithLogger sends logs to l instead of nowhere.
func WithLogger(l *slog.Logger) Option { return func(n *Node) { n.log = l } }

// WithProgress calls f while recovery goes on, never twice at once.
func WithProgress(f func(store.Progress)) Option { return func(n *Node) { n.progress = f } }

// WithMerges gives native clients merge functions beside those that every server has, by name. Nodes of
// a cluster must all have the same: whoever owns a key runs them.
func WithMerges(merges map[string]session.Merge) Option {
	return func(n *Node) { n.merges = merges }
}

// WithAnyAdminPort takes any free admin port if the configured one is taken, so
// that a second server on a machine needs no second decision.
func WithAnyAdminPort() Option { return func(n *Node) { n.anyAdminPort = true } }

// Start checks cfg, recovers the data directory and serves. It returns when
// clients can connect.
func Start(cfg Config, options ...Option) (*Node, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg.effective(), started: time.Now(), shutdown: make(chan struct{})}
	n.log = slog.New(slog.DiscardHandler)
	n.progress = func(store.Progress) {}
	for _, o := range options {
		o(n)
	}
	n.enter("starting")
	if err := n.start(); err != nil {
		return nil, errors.Join(err, n.close(context.Background()))
	}
	n.serving()
	return n, nil
}

// serving tells that the node is ready, unless it is being stopped meanwhile.
func (n *Node) serving() {
	n.phase.Store(&admin.Phase{Name: "serving", Ready: true})
	if n.stopping.Load() {
		n.enter("stopping")
	}
}

func (n *Node) start() error {
	machine := MachineMemory()
	limit := n.cfg.MemoryLimit.Of(machine)
	tuneCollector(limit, machine)
	if err := n.cfg.probePorts(); err != nil {
		return err
	}
	if n.cfg.Cluster != "" {
		n.cluster = newHost(n, limit)
	}
	if err := n.startAdmin(); err != nil {
		return err
	}
	if n.cluster != nil {
		return n.startCluster()
	}
	n.enter("recovering")
	opened, err := store.Open(n.cfg.storeOptions(limit, n.loops(), n.log, n.report))
	if err != nil {
		return err
	}
	n.store.Store(opened)
	if err := n.openTenants(opened); err != nil {
		return err
	}
	if err := n.openFunctions(); err != nil {
		return err
	}
	config := n.cfg.redisConfig(n.log)
	config.Tenants, config.Functions = n.tenants.Load(), n.functions.Load()
	front, err := redis.New(opened, config)
	if err != nil {
		return err
	}
	tuneProcessors(n.loops()) // After New, which counts processors to choose its loops.
	if err := front.Start(); err != nil {
		return err
	}
	n.redis.Store(front)
	return n.startNative(opened)
}

// startCluster makes this server a node of a cluster.
func (n *Node) startCluster() error {
	if err := n.cluster.open(); err != nil {
		return err
	}
	return n.cluster.start()
}

func (n *Node) startAdmin() (err error) {
	addr := n.cfg.AdminAddr
	if addr == "" {
		return nil
	}
	n.admin, err = admin.Start(addr, version, n, n.log)
	if host, _, splitErr := net.SplitHostPort(addr); errors.Is(err, syscall.EADDRINUSE) && n.anyAdminPort && splitErr == nil {
		n.admin, err = admin.Start(net.JoinHostPort(host, "0"), version, n, n.log)
	}
	if err != nil {
		return fmt.Errorf("open the admin port: %w", err)
	}
	return nil
}

// loops is the most network loops that there will be.
func (n *Node) loops() int {
	if n.cfg.Loops > 0 {
		return n.cfg.Loops
	}
	return runtime.NumCPU()
}

// probePorts finds a taken port before recovery does its long work.
func (c *Config) probePorts() error {
	for _, port := range []int{c.Port, c.TLSPort, c.NativePort} {
		if port == 0 {
			continue
		}
		for _, host := range c.Bind {
			host, optional := strings.CutPrefix(host, "-")
			l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
			if err == nil {
				err = l.Close()
			}
			if err != nil && !optional {
				return fmt.Errorf("open port %d: %w", port, err)
			}
		}
	}
	return nil
}

func (n *Node) enter(phase string) { n.phase.Store(&admin.Phase{Name: phase}) }

func (n *Node) report(p store.Progress) {
	n.phase.Store(&admin.Phase{Name: "recovering", Progress: p})
	n.progress(p)
}

// Config is what the node really runs with.
func (n *Node) Config() Config { return n.cfg }

// Addr is where Redis clients connect: the plain port or socket, or the TLS
// port where that is all there is.
func (n *Node) Addr() string {
	front := n.redis.Load()
	if addr := front.Addr(); addr != nil {
		return addr.String()
	}
	return front.TLSAddr().String()
}

// AdminAddr is where the admin port listens; empty if it is off.
func (n *Node) AdminAddr() string {
	if n.admin == nil {
		return ""
	}
	return n.admin.Addr()
}

// ShutdownRequested is closed when a client sent SHUTDOWN, and when the node cannot go on; see Failure.
func (n *Node) ShutdownRequested() <-chan struct{} {
	if n.cluster != nil {
		return n.shutdown
	}
	return n.redis.Load().ShutdownRequested()
}

// fail says that the node cannot go on in this process: who started it shall stop it, and may
// start it again.
func (n *Node) fail(err error) {
	if n.failure.CompareAndSwap(nil, &err) {
		n.log.Error("this node cannot go on and stops", "why", err)
		n.requestShutdown()
	}
}

// Failure is why the node asked to be stopped, nil if a client did, or nobody.
func (n *Node) Failure() error {
	if err := n.failure.Load(); err != nil {
		return *err
	}
	return nil
}

func (n *Node) requestShutdown() { n.shutdownOnce.Do(func() { close(n.shutdown) }) }

// Stop ends the node in good order: clients get the replies of what they have
// sent, for half of the time that ctx leaves, then the store flushes and closes. When ctx ends first, Stop returns
// and the rest is left to the end of the process; what was acknowledged is safe
// in any case, as far as the durability says.
func (n *Node) Stop(ctx context.Context) error {
	n.stopping.Store(true)
	n.enter("stopping")
	return n.close(ctx)
}

func (n *Node) close(ctx context.Context) error {
	if n.cluster != nil {
		return n.closeCluster(ctx)
	}
	var errs []error
	closeStore := (*store.Store).Close
	if functions := n.functions.Load(); functions != nil {
		functions.Halt()
	}
	clients, cancel := forClients(ctx)
	defer cancel()
	if front := n.redis.Load(); front != nil {
		if !front.ShutdownSaves() {
			closeStore = (*store.Store).CloseUnsaved
		}
		if err := front.Shutdown(clients); err != nil {
			n.log.Warn("clients were cut off", "err", err)
		}
	}
	n.stopNative(clients)
	if functions := n.functions.Load(); functions != nil {
		functions.Close()
	}
	if tenants := n.tenants.Load(); tenants != nil {
		tenants.Close()
	}
	if opened := n.store.Load(); opened != nil {
		errs = append(errs, within(ctx, func() error { return closeStore(opened) }))
	}
	if n.admin != nil {
		errs = append(errs, n.admin.Close(ctx))
	}
	return errors.Join(errs...)
}

func (n *Node) closeCluster(ctx context.Context) error {
	front := n.redis.Load()
	err := n.cluster.stop(ctx, front != nil && front.ShutdownSaves())
	if n.admin != nil {
		err = errors.Join(err, n.admin.Close(ctx))
	}
	return err
}

// forClients is the part of a stop in which clients get what they have asked for. Who has no answer then is cut off, and the
// other half of the time is the store's: whatever a client waits for, what was acknowledged is kept.
func forClients(ctx context.Context) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}

// within waits for f no longer than ctx lasts.
func within(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the store was not closed in time: raise --shutdown-timeout (%w)", ctx.Err())
	}
}
