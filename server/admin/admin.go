// Package admin is the operator's HTTP port: metrics for Prometheus, health
// and readiness for whoever restarts and routes, profiles, and a page for
// eyes. It is the only package that knows Prometheus; the others return plain
// structs of numbers.
//
//	/          status page            /metrics      Prometheus
//	/healthz   is it worth keeping?   /debug/pprof  profiles
//	/readyz    does it serve now?
//
// Invariants:
//   - It answers from before recovery until after the last flush, so that a
//     slow start or stop can be watched.
//   - It reads counters only: no request here waits for the store or slows it.
//   - It changes nothing and shows no keys, values or passwords.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/server/redis"
)

// Node is what the admin port asks of the process that it belongs to. All methods
// may be called at any time, from many goroutines.
type Node interface {
	// Phase tells what the node is doing.
	Phase() Phase
	// Health returns why the node cannot keep its promises, such as a failed disk.
	Health() error
	// Facts are lines for the status page.
	Facts() []Fact
}

// What a Node has besides: the numbers of its parts, false before they run.
type (
	storeNode   interface{ Store() (store.Metrics, bool) }
	redisNode   interface{ Redis() (redis.Metrics, bool) }
	nicNode     interface{ NIC() (nic.Totals, bool) }
	replicaNode interface{ Replica() (Replica, bool) }
)

// Phase is a step of a node's life.
type Phase struct {
	Name     string // "starting", "recovering", "serving", "stopping"
	Ready    bool
	Progress store.Progress // while recovering
}

// Fact is one line of the status page.
type Fact struct{ Name, Value string }

// Server answers HTTP on the admin address.
type Server struct {
	listener net.Listener
	http     http.Server
}

// Start listens on addr and serves until Close.
func Start(addr, version string, node Node, log *slog.Logger) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: listener}
	s.http = http.Server{
		Handler:           Handler(version, node),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the admin port stopped", "err", err)
		}
	}()
	return s, nil
}

// Addr is the address that the port really has.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close lets running requests end until ctx does.
func (s *Server) Close(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return s.http.Close() // A long profile must not hold up the end.
	}
	return nil
}

// Handler returns the routes of the admin port.
func Handler(version string, node Node) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metricsHandler(version, node))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { healthz(w, node) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { readyz(w, node) })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { status(w, version, node) })
	mux.HandleFunc("/debug/pprof/", pprof.Index) // Without cmdline: flags may have passwords.
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// healthz fails only when a restart could help.
func healthz(w http.ResponseWriter, node Node) {
	if err := node.Health(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// readyz fails while clients should be sent elsewhere.
func readyz(w http.ResponseWriter, node Node) {
	phase := node.Phase()
	if !phase.Ready {
		http.Error(w, phase.String(), http.StatusServiceUnavailable)
		return
	}
	healthz(w, node)
}

// String says the phase, and how far it is.
func (p Phase) String() string {
	if p.Progress.Total <= 0 {
		return p.Name
	}
	return fmt.Sprintf("%s: %s %d of %d %s", p.Name, p.Progress.Stage, p.Progress.Done, p.Progress.Total, p.Progress.Unit)
}
