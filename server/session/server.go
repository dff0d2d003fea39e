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
//   - An operation with an identity is executed once, however often it comes.
package session

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/ostrodb/ostro/engine/store"
)

// Options say how the front door serves. The zero value serves everybody, alone.
type Options struct {
	// Gate tells what may be served; nil is Alone.
	Gate Gate
	// Password is what clients must give; empty: none is asked for.
	Password string
	// Protected refuses clients from other machines while there is no password.
	Protected bool
	// TLS, if set, is spoken on connections that Serve accepts. Those that ServeConn
	// gets are served as they are.
	TLS *tls.Config
	// Node is how the server names itself to clients.
	Node string
	// Workers is how many store sessions execute batches; 0: one per processor.
	Workers int
	// MaxSessions is how many connections there may be; 0: 10,000.
	MaxSessions int
	// MaxOps is how many unanswered operations a session may have; 0: 65,536.
	MaxOps int
	// MaxFrameBytes bounds what a client may send in one frame; 0: wire.MaxFrameBytes.
	MaxFrameBytes int
	// WaitLimit is how long an operation waits for records that are arriving; 0: 30 s.
	WaitLimit time.Duration
	// Lease is how long the result of a write is remembered for retries; 0: 3 min.
	Lease time.Duration
	// Merges are merge functions beside those that are built in.
	Merges map[string]Merge
	Logger *slog.Logger
}

// Merge makes a record's new value of its old one and an operand. It appends to dst and
// returns it, keeps no argument, and depends on nothing else: it may run more than once.
type Merge func(dst, old []byte, exists bool, operand []byte) ([]byte, error)

// Server serves native sessions.
type Server struct {
	st   *store.Store
	opts Options
	gate Gate
}

// ErrStopped says that the server was shut down.
var ErrStopped = errors.New("the server has stopped")

// New makes a server on a store. It serves what Serve or ServeConn give it.
func New(st *store.Store, o Options) (*Server, error) {
	s := &Server{st: st, opts: o, gate: o.Gate}
	if s.gate == nil {
		s.gate = Alone()
	}
	return s, nil
}

// Serve accepts connections until Shutdown, and reads the magic from each.
func (s *Server) Serve(l net.Listener) error { return errors.ErrUnsupported }

// ServeConn serves one connection whose first bytes, wire.Magic, were read already. It
// returns when the connection is closed; the connection is the server's.
func (s *Server) ServeConn(c net.Conn) { _ = c.Close() }

// Shutdown lets sessions end in good order: what was received is answered, nothing more
// is read. When ctx ends first, connections are cut.
func (s *Server) Shutdown(ctx context.Context) error { return nil }
