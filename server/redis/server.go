package redis

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/store"
)

// Server is the Redis front door of a store.
type Server struct {
	store    *store.Store
	cfg      Config // as started; what may change lives in settings
	settings settings
	log      *slog.Logger
	started  time.Time
	slowlog  slowlog
	clients  registry
	totals   totals

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

// totals count over the server's life, as INFO stats shows them. What happens
// per command is counted in the loops and merged on demand, see stats.go.
type totals struct {
	connectionsAccepted atomic.Int64
	connectionsRejected atomic.Int64
	outputLimitClosed   atomic.Int64
	queryLimitClosed    atomic.Int64
	protocolErrors      atomic.Int64
	authFailures        atomic.Int64
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
