package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	calls "github.com/ostrodb/ostro/server/call"
)

// Server is the Redis front door of a store.
//
//	New, Start, Shutdown      or      New, Serve(ctx)
//
// It serves from Start until Shutdown returns. The store is the caller's to
// close, after that.
type Server struct {
	store                 *store.Store
	cfg                   Config // as started; what may change lives in settings
	settings              settings
	log                   *slog.Logger
	started               time.Time
	slowlog               slowlog
	clients               registry
	totals                totals
	pause                 pauseState
	slow                  sync.Mutex // held by the one command that computes in the background
	books                 books      // what commands keep about the server as a whole
	calls                 *calls.Host
	grounds, groundsAsked func() calls.Ground // what the node serves now

	listeners []*listener // until the first loop takes them
	addrs     []net.Addr
	tls       tlsFront

	adaptive  bool
	loops     atomic.Pointer[[]*loop] // started so far; only grows
	active    atomic.Int32            // the first so many of them serve
	loopsDone sync.WaitGroup
	loopsMu   sync.Mutex // guards growth of loops, and:
	maxLoops  int
	running   bool
	stopping  bool

	links       sync.WaitGroup // connections to other nodes
	unsubscribe func()         // from the cluster's news

	shutdownOnce sync.Once
	shutdown     chan struct{} // closed when a client sent SHUTDOWN
	shutdownSave atomic.Int32  // what SHUTDOWN asked for: saveDefault, saveYes, saveNo
}

// What SHUTDOWN asked for.
const (
	saveDefault int32 = iota
	saveYes
	saveNo
)

// graceMillis bounds how long Serve waits for clients when its context ends.
const graceMillis = 5000

// New prepares a server; nothing listens before Start.
func New(st *store.Store, cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Server{store: st, cfg: cfg, log: cfg.Logger, started: time.Now(), shutdown: make(chan struct{})}
	s.grounds = func() calls.Ground { return cfg.Cluster.Routing() }
	s.groundsAsked = func() calls.Ground { return (*askedRouting)(cfg.Cluster.Routing()) }
	s.calls = calls.NewHost(st, calls.Options{WaitLimit: cfg.ClusterWait})
	s.settings.init(&cfg)
	s.slowlog.maxLen = cfg.SlowlogMaxLen
	s.adaptive = cfg.Loops == 0
	s.maxLoops = cfg.Loops
	if s.adaptive {
		s.maxLoops = runtime.GOMAXPROCS(0)
	}
	s.loops.Store(new([]*loop))
	if err := s.tls.prepare(&cfg.TLS); err != nil {
		return nil, err
	}
	return s, nil
}

// Start listens and serves. It returns as soon as clients can connect.
func (s *Server) Start() error {
	s.loopsMu.Lock()
	defer s.loopsMu.Unlock()
	if s.running || s.stopping {
		return errors.New("redis: a Server can be started only once")
	}
	if err := s.listenAll(); err != nil {
		s.closeListeners()
		return err
	}
	if err := s.tls.listen(s); err != nil {
		s.closeListeners()
		return err
	}
	if err := s.startLoops(); err != nil {
		s.closeListeners()
		s.tls.close()
		s.stopLoops(func(l *loop) { l.drain() })
		s.loopsDone.Wait()
		return err
	}
	s.running = true
	if s.cfg.Cluster != nil {
		s.unsubscribe = s.cfg.Cluster.Notify(s.routingChanged)
	}
	s.tls.serve(s)
	return nil
}

// startLoops starts one loop, or as many as configured. The first accepts.
// The caller holds loopsMu.
func (s *Server) startLoops() error {
	n := s.maxLoops
	if s.adaptive {
		n = 1
	}
	for range n {
		l, err := s.addLoop()
		if err != nil {
			return fmt.Errorf("starting a network loop: %w", err)
		}
		s.active.Store(int32(l.id + 1))
	}
	first := s.startedLoops()[0]
	listeners := s.listeners
	s.listeners = nil
	for _, ln := range listeners {
		s.addrs = append(s.addrs, ln.addr)
	}
	first.post(message{run: func() { first.listenTo(listeners) }})
	return nil
}

// addLoop starts a further loop. The caller holds loopsMu.
func (s *Server) addLoop() (*loop, error) {
	loops := s.startedLoops()
	l, err := s.newLoop(len(loops))
	if err != nil {
		return nil, err
	}
	grown := append(loops[:len(loops):len(loops)], l)
	s.loops.Store(&grown)
	s.loopsDone.Add(1)
	go l.run()
	return l, nil
}

func (s *Server) startedLoops() []*loop { return *s.loops.Load() }

func (s *Server) closeListeners() {
	for _, ln := range s.listeners {
		ln.close()
	}
	s.listeners = nil
}

// Addr is the first TCP address that the server listens on, or the unix
// socket's if there is none; nil before Start.
func (s *Server) Addr() net.Addr {
	if len(s.addrs) == 0 {
		return nil
	}
	return s.addrs[0]
}

// TLSAddr is the address of the encrypted port, nil if there is none.
func (s *Server) TLSAddr() net.Addr { return s.tls.addr() }

// Serve starts the server and shuts it down when ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	if err := s.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceMillis*time.Millisecond)
	defer cancel()
	return s.Shutdown(grace)
}

// Shutdown stops accepting, finishes the commands that have arrived, sends
// their replies, and closes every connection: by the time ctx ends even those
// whose clients do not read.
func (s *Server) Shutdown(ctx context.Context) error {
	s.loopsMu.Lock()
	s.stopping = true
	running, unsubscribe := s.running, s.unsubscribe
	s.unsubscribe = nil
	s.loopsMu.Unlock()
	if !running {
		return nil
	}
	if unsubscribe != nil {
		defer unsubscribe()
	}
	s.tls.stopAccepting()
	s.stopLoops(func(l *loop) { l.drain() })
	done := make(chan struct{})
	go func() {
		s.loopsDone.Wait()
		s.calls.Close()
		s.links.Wait()
		s.tls.wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.stopLoops(func(l *loop) { l.abort() })
	for _, l := range s.startedLoops() {
		l.sess.GiveUp()
	}
	s.tls.close()
	<-done
	return ctx.Err()
}

func (s *Server) stopLoops(how func(*loop)) {
	for _, l := range s.startedLoops() {
		l.post(message{run: func() { how(l) }})
	}
}

// kill closes another client. It returns at once; the client's own loop does it.
func (s *Server) kill(c *conn) {
	if l := c.loop.Load(); l != nil {
		l.post(message{kill: c})
	}
}

// requestShutdown tells whoever runs the server that a client sent SHUTDOWN.
// save is one of saveDefault, saveYes, saveNo.
func (s *Server) requestShutdown(save int32) {
	s.shutdownOnce.Do(func() {
		s.shutdownSave.Store(save)
		close(s.shutdown)
	})
}

// ShutdownRequested is closed when a client sent SHUTDOWN. Whoever started
// the Server then calls Shutdown and closes the store.
func (s *Server) ShutdownRequested() <-chan struct{} { return s.shutdown }

// ShutdownSaves reports whether SHUTDOWN came without NOSAVE.
func (s *Server) ShutdownSaves() bool { return s.shutdownSave.Load() != saveNo }
