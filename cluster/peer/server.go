package peer

import (
	"context"
	"log/slog"
	"net"

	"github.com/ostrodb/ostro/cluster/view"
)

// Handler answers calls of one method. It returns the head of the answer, which
// becomes JSON, or Raw, or nil; and the bulk that follows it.
type Handler func(ctx context.Context, c *Call) (head any, bulk []byte, err error)

// Call is a request as its handler sees it. Head and Bulk are the handler's own.
type Call struct {
	From   view.NodeID // who calls, as it said under the secret
	Method string
	Head   []byte
	Bulk   []byte

	send func(head any, bulk []byte) error
}

// ServerOptions say how a Server is made.
type ServerOptions struct {
	Node   view.NodeID
	Secret []byte // what all nodes of the cluster share; required
	Log    *slog.Logger
}

// Server answers calls on connections that are handed to it.
type Server struct{}

// NewServer makes a server without methods.
func NewServer(o ServerOptions) (*Server, error) { panic("soon") }

// Handle sets who answers a method, each call in a goroutine of its own. It comes before
// the first connection.
func (s *Server) Handle(method string, h Handler) { panic("soon") }

// HandleInOrder is Handle for quick methods: calls of a connection are answered one after the
// other, in the order they came.
func (s *Server) HandleInOrder(method string, h Handler) { panic("soon") }

// ServeConn serves a connection, whose first byte (of Magic) is still unread,
// until it ends, and closes it. See Peek.
func (s *Server) ServeConn(c net.Conn) { panic("soon") }

// Close ends all connections and returns when no handler runs any more.
func (s *Server) Close() error { panic("soon") }

// Bind decodes the head.
func (c *Call) Bind(into any) error { panic("soon") }

// Send answers a streaming call in parts. It waits while the caller is slow.
func (c *Call) Send(head any, bulk []byte) error { return c.send(head, bulk) }

// Raw is a head that is not JSON.
type Raw []byte
