// Package session is the native front door: it reads batches of operations,
// executes each batch as a whole on a worker's store session, and sends results in
// the order in which they come to be.
//
//	conn ── reader ── frames ── worker: Begin, one comparison of views, execute, Seal, End
//	                              │                       └─ cold or arriving: waits alone (park)
//	                              └─ durable? ── no: held until the watermark passes
//	                                    └── yes, and the lease is alive: one write
//
// Invariants:
//   - A batch is executed only in the view that it carries, as the gate tells it
//     inside of the store session's guard.
//   - No result leaves before its ticket is durable, and none leaves once the gate
//     is not alive.
//   - An operation with an identity takes effect once, however often it comes: its
//     outcome is recorded by the store with what it does.
package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/balance"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/call"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/wire"
)

// Options say how the front door serves. The zero value serves everybody, alone.
type Options struct {
	// Gate tells what may be served; nil is Alone.
	Gate Gate
	// Check is how ownership is checked: ByViews, or ByKeys to compare.
	Check Check
	// Heat, if there is one, is told which slots are used.
	Heat *balance.Meter
	// Tenants are who shares the server with its operator; nil: nobody.
	Tenants *tenant.Registry
	// Functions are what clients have installed; nil: they cannot.
	Functions *library.Library
	// Access tells what the operator's clients must give, nothing if empty, and whether clients from other machines are
	// refused while there is no password. Operators change both while the server runs. nil: everybody is let in.
	Access func() (password string, protected bool)
	// TLS, if set, is spoken on connections that Serve accepts. Those that ServeConn
	// gets are served as they are.
	TLS *tls.Config
	// Node is how the server names itself to clients.
	Node string
	// Workers is how many store sessions execute batches; 0: one per processor and one more.
	Workers int
	// MaxSessions is how many connections there may be; 0: 10,000.
	MaxSessions int
	// MaxOps is how many unanswered operations a session may have; 0: 65,536.
	MaxOps int
	// MaxFrameBytes bounds what a client may send in one frame; 0: wire.MaxFrameBytes.
	MaxFrameBytes int
	// WaitLimit is how long an operation waits for records that are arriving; 0: 30 s.
	WaitLimit time.Duration
	// Merges are merge functions beside those that are built in.
	Merges map[string]Merge
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	orElse(&o.Workers, runtime.NumCPU()+1)
	orElse(&o.MaxSessions, 10_000)
	orElse(&o.MaxOps, 1<<16)
	orElse(&o.MaxFrameBytes, wire.MaxFrameBytes)
	orElse(&o.WaitLimit, 30*time.Second)
	if o.Gate == nil {
		o.Gate = Alone()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func orElse[T comparable](v *T, other T) {
	if *v == *new(T) {
		*v = other
	}
}

// Server serves native sessions.
type Server struct {
	st        *store.Store
	opts      Options
	gate      Gate
	merges    map[string]Merge
	calls     *call.Host
	grounds   func() call.Ground // what the node serves now; nil: everything, always
	databases int
	workers   []*worker
	turn      atomic.Uint32 // whose turn it is to get a connection
	count     counters
	began     time.Time

	mu        sync.Mutex
	conns     map[*conn]struct{}
	listeners map[net.Listener]struct{}
	stopping  bool
	ending    atomic.Bool    // as stopping: operations do not wait for records to arrive any more
	serving   sync.WaitGroup // connections
	running   sync.WaitGroup // workers and who wakes them
	changing  sync.WaitGroup // changes of modules
	changes   context.Context
	giveUp    context.CancelFunc // of changes
	stop      chan struct{}
}

// ErrStopped says that the server was shut down.
var ErrStopped = errors.New("the server has stopped")

// New makes a server on a store. It serves what Serve or ServeConn give it, until
// Shutdown, which must come before the store's end.
func New(st *store.Store, o Options) (*Server, error) {
	o = o.withDefaults()
	s := &Server{
		st: st, opts: o, gate: o.Gate, databases: st.Options().Databases, began: time.Now(),
		conns: map[*conn]struct{}{}, listeners: map[net.Listener]struct{}{}, stop: make(chan struct{}),
	}
	s.changes, s.giveUp = context.WithCancel(context.Background())
	s.merges = allMerges(o.Merges)
	if _, all := o.Gate.(*alone); !all {
		s.grounds = func() call.Ground { return s.gate.Routing() }
	}
	s.calls = call.NewHost(st, call.Options{WaitLimit: o.WaitLimit})
	for range o.Workers {
		w, err := s.newWorker()
		if err != nil {
			s.endWorkers()
			return nil, fmt.Errorf("open the native front door: %w", err)
		}
		s.workers = append(s.workers, w)
	}
	s.running.Go(s.watchGate)
	return s, nil
}

// watchGate lets workers look again at what waits, whenever ownership changes.
func (s *Server) watchGate() {
	for {
		changed := s.gate.Changed()
		for _, w := range s.workers {
			w.look()
		}
		select {
		case <-changed:
		case <-s.stop:
			return
		}
	}
}

// Serve accepts connections until Shutdown, and reads the magic from each.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		_ = l.Close() // As for one that Shutdown finds.
		return ErrStopped
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	for {
		c, err := l.Accept()
		if err != nil {
			return s.acceptEnded(l, err)
		}
		go s.meet(c)
	}
}

func (s *Server) acceptEnded(l net.Listener, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
	if s.stopping {
		return ErrStopped
	}
	return err
}

// meet reads the magic of a connection of a port of our own.
func (s *Server) meet(c net.Conn) {
	if s.opts.TLS != nil {
		c = tls.Server(c, s.opts.TLS)
	}
	var magic [len(wire.Magic)]byte
	if !s.enter(c, magic[:]) {
		return
	}
	s.ServeConn(c)
}

// ServeConn serves one connection whose first bytes, wire.Magic, were read already. It
// returns when the connection is closed; the connection is the server's.
func (s *Server) ServeConn(c net.Conn) {
	cn := newConn(s, c)
	if err := s.admit(cn); err != nil {
		cn.part(err)
		return
	}
	defer s.serving.Done()
	cn.serve()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, cn)
}

// admit notes a connection, so that Shutdown finds it.
func (s *Server) admit(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping:
		return &wire.Goodbye{Reason: wire.ReasonStopping, Text: "the server is stopping"}
	case len(s.conns) >= s.opts.MaxSessions:
		return &wire.Goodbye{Reason: wire.ReasonTooMany, Text: "the server has as many sessions as it takes: close some, or raise maxclients"}
	}
	s.conns[c] = struct{}{}
	s.count.sessions.Add(1)
	s.serving.Add(1)
	return nil
}

// Shutdown lets sessions end in good order: what was received is answered, nothing more
// is read. When ctx ends first, connections are cut.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	first := !s.stopping
	s.stopping = true
	s.ending.Store(true)
	for _, w := range s.workers {
		w.look()
	}
	for l := range s.listeners {
		_ = l.Close() // Accept tells what there is to tell.
	}
	for c := range s.conns {
		c.finish()
	}
	s.mu.Unlock()
	err := s.awaitConns(ctx)
	if first {
		close(s.stop)
	}
	s.running.Wait()
	s.calls.Close()
	s.giveUp()
	s.changing.Wait()
	s.endWorkers()
	return err
}

func (s *Server) awaitConns(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.serving.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.conns {
		c.close()
	}
	s.mu.Unlock()
	for _, w := range s.workers {
		w.sess.GiveUp()
	}
	<-done
	return fmt.Errorf("native sessions were cut off: %w", ctx.Err())
}

// endWorkers closes the workers' sessions, once.
func (s *Server) endWorkers() {
	for _, w := range s.workers {
		w.end()
	}
}
