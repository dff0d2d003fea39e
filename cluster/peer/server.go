package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	link "github.com/ostrodb/ostro/fabric/frame"
)

// Handler answers calls of one method. It returns the head of the answer, which
// becomes JSON, or is Raw or nil, and the bulk that follows it.
type Handler func(ctx context.Context, c *Call) (head any, bulk []byte, err error)

// Call is a request as its handler sees it. Head and Bulk are the handler's own,
// until it returns if it was set by HandleInOrder.
type Call struct {
	From   view.NodeID // who calls, as it said under the secret
	Method string
	Head   []byte
	Bulk   []byte

	send   func(head any, bulk []byte) error
	by     *caller // nil if there is no connection
	after  *caller // whose answers to earlier calls may wait for this one; nil if none do
	pieces [][]byte
	sent   func()
}

// Gather makes pieces the rest of the answer's bulk, in their order and from where they lie: nothing
// is copied on the way to the network, but for what it has no room for. They must stay as they are until sent is called,
// which it is once, whatever becomes of the answer, and before anybody waits for the caller to take it.
func (c *Call) Gather(pieces [][]byte, sent func()) { c.pieces, c.sent = pieces, sent }

// Gathered gives what Gather was told.
func (c *Call) Gathered() (pieces [][]byte, sent func()) { return c.pieces, c.sent }

// NewCall is a call for a handler that is used without a connection; send takes the parts of its answer.
func NewCall(from view.NodeID, head, bulk []byte, send func(head any, bulk []byte) error) *Call {
	return &Call{From: from, Head: head, Bulk: bulk, send: send}
}

// Bind decodes the head.
func (c *Call) Bind(into any) error { return decodeHead(c.Head, into) }

// Flush lets the answers to calls before this one go that wait to leave with it, and gives back what was gathered for them. It waits for
// nobody, whatever the caller does. A handler that is about to wait for something calls it first, if that is needed elsewhere.
func (c *Call) Flush() error {
	if c.after == nil {
		return nil
	}
	return c.after.setAside()
}

// Send answers a call of Stream with one more part. It waits while the caller is slow.
func (c *Call) Send(head any, bulk []byte) error { return c.send(head, bulk) }

// HangUp ends the connection that the call came by, and with it whatever waits for the caller there: a Send, say, that fails then. It is
// for calls of Stream, which have a connection of their own, and may be called at any time.
func (c *Call) HangUp() {
	if c.by != nil {
		_ = c.by.out.c.Close()
	}
}

const (
	// greetingTimeout is what a stranger gets.
	greetingTimeout = 5 * time.Second
	// maxConns bounds connections, strangers' included.
	maxConns = 1024
	// maxCalls bounds the handlers that run at once for one connection.
	maxCalls = 128
)

// ServerOptions say how a Server is made.
type ServerOptions struct {
	Node   view.NodeID
	Secret []byte // what all nodes of the cluster share; required
	Log    *slog.Logger
}

// Server answers calls on connections that are handed to it.
type Server struct {
	node   view.NodeID
	secret []byte
	log    *slog.Logger

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	known   sync.RWMutex // of methods; quiet goroutines only read them
	methods map[string]method

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool

	lent sync.Pool // of *[]byte, for large requests

	calls, failed, malformed, unauthorized atomic.Uint64
}

type method struct {
	handler  Handler
	inOrder  bool
	promptly bool
	quiet    bool
	lent     bool
}

// NewServer makes a server without methods.
func NewServer(o ServerOptions) (*Server, error) {
	if len(o.Secret) == 0 {
		return nil, errors.New("peer: a server needs the secret that all nodes of the cluster share")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		node: o.Node, secret: o.Secret, log: o.Log,
		methods: map[string]method{}, conns: map[net.Conn]struct{}{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.HandleInOrder(methodPing, pong)
	return s, nil
}

// methodPing is answered by every server at once.
const methodPing = "peer.ping"

func pong(context.Context, *Call) (any, []byte, error) { return nil, nil, nil }

// Handle sets who answers a method, each call in a goroutine of its own.
func (s *Server) Handle(name string, h Handler) { s.set(name, method{handler: h}) }

// HandleInOrder is Handle for quick methods: calls of a connection are answered
// one after the other, as they came.
func (s *Server) HandleInOrder(name string, h Handler) {
	s.set(name, method{handler: h, inOrder: true})
}

// HandlePromptly is HandleInOrder for calls that come one after the other on Lines, and that clients wait for: from the first of them on
// whoever serves the connection listens for the next, on a thread that goes before others.
func (s *Server) HandlePromptly(name string, h Handler) {
	s.set(name, method{handler: h, inOrder: true, promptly: true})
}

// HandleQuietly is HandlePromptly for bulk work: from the first such call on all of a connection is
// served by a thread of low priority. So callers have Lines for it, and the handler takes no lock that those take
// who serve clients: see background.Diligence.
func (s *Server) HandleQuietly(name string, h Handler) {
	s.set(name, method{handler: h, inOrder: true, promptly: true, quiet: true})
}

// HandleLent is Handle for methods with large requests: Head and Bulk are the handler's until it returns, and their memory
// is then another's. What is garbage has the collector stop everybody, and large requests would make much of it.
func (s *Server) HandleLent(name string, h Handler) { s.set(name, method{handler: h, lent: true}) }

func (s *Server) set(name string, m method) {
	s.known.Lock()
	defer s.known.Unlock()
	s.methods[name] = m
}

func (s *Server) method(name string) (method, bool) {
	s.known.RLock()
	defer s.known.RUnlock()
	m, ok := s.methods[name]
	return m, ok
}

// Close ends all connections and returns when no handler runs any more.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.cancel()
	s.running.Wait()
	return nil
}

// Metrics counts what callers did.
type Metrics struct {
	Conns        int    // connections now
	Calls        uint64 // requests
	Failed       uint64 // of them, those that were answered with an error
	Malformed    uint64 // connections that did not speak the protocol
	Unauthorized uint64 // connections without the secret
}

// Metrics tells what happened so far.
func (s *Server) Metrics() Metrics {
	s.mu.Lock()
	conns := len(s.conns)
	s.mu.Unlock()
	return Metrics{conns, s.calls.Load(), s.failed.Load(), s.malformed.Load(), s.unauthorized.Load()}
}

// ServeConn serves a connection whose first byte, of Magic, is still unread (see
// Peek), until it ends, and closes it.
func (s *Server) ServeConn(c net.Conn) {
	if !s.enter(c) {
		_ = c.Close()
		return
	}
	defer s.leave(c)
	watch(c, calleePatience)
	from, err := s.greet(c)
	if err == nil {
		err = s.serve(c, from)
	}
	switch addr := c.RemoteAddr().String(); {
	case errors.Is(err, link.ErrUnauthorized):
		s.unauthorized.Add(1)
		s.log.Warn("a caller without the secret was refused", "addr", addr)
	case errors.Is(err, ErrMalformed) || errors.Is(err, link.ErrMalformed):
		s.malformed.Add(1)
		s.log.Warn("a caller that makes no sense was refused", "addr", addr, "node", from, "error", err)
	case !link.UsualEnd(err):
		s.log.Info("a caller's connection ended", "addr", addr, "node", from, "error", err)
	}
}

func (s *Server) enter(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) >= maxConns {
		return false
	}
	s.conns[c] = struct{}{}
	s.running.Add(1)
	return true
}

func (s *Server) leave(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.running.Done()
}

// hello is what a caller says of itself, and whom it wants.
type hello struct {
	Node view.NodeID `json:"node"`
	To   view.NodeID `json:"to"`
}

// greet hears who calls. Both sides know the secret when it returns.
func (s *Server) greet(c net.Conn) (view.NodeID, error) {
	_ = c.SetDeadline(time.Now().Add(greetingTimeout))
	said, err := link.Hear(c, Magic, s.secret)
	if err != nil {
		return "", err
	}
	var h hello
	if err := json.Unmarshal(said, &h); err != nil {
		return "", fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := h.Node.Check(); err != nil {
		link.Refuse(c, err.Error())
		return "", fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if h.To != s.node {
		link.Refuse(c, fmt.Sprintf("this is node %s, not %s", s.node, h.To))
		return h.Node, fmt.Errorf("node %s looked for node %s here", h.Node, h.To)
	}
	if err := link.Accept(c); err != nil {
		return h.Node, err
	}
	return h.Node, c.SetDeadline(time.Time{})
}
