package peer

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
)

// PoolOptions say how a Pool is made.
type PoolOptions struct {
	Node   view.NodeID // who calls
	Secret []byte
	// Address tells where a node can be reached now; an empty one or an error means nowhere.
	Address     func(view.NodeID) (string, error)
	TLS         *tls.Config   // nil: none
	DialTimeout time.Duration // default 2 s
}

// Pool calls other nodes. Connections are made when they are needed, and again
// when they ended.
type Pool struct{}

// NewPool makes a pool without connections.
func NewPool(o PoolOptions) (*Pool, error) { panic("soon") }

// Call sends a request and waits for its answer or for the end of ctx, whose deadline
// the handler has, too. head and answer are JSON, or Raw and *Raw, or nil.
// Bulk of more than a few kilobytes travels on a connection of its own.
func (p *Pool) Call(ctx context.Context, to view.NodeID, method string, head any, bulk []byte, answer any) (answerBulk []byte, err error) {
	panic("soon")
}

// Go is Call without waiting: done is called once, from the connection's reader,
// and must be quick. Requests of one caller to one node are sent in order.
func (p *Pool) Go(ctx context.Context, to view.NodeID, method string, head any, bulk []byte, done func(head, bulk []byte, err error)) {
	panic("soon")
}

// Stream sends a request whose answer comes in parts.
func (p *Pool) Stream(ctx context.Context, to view.NodeID, method string, head any) (*Stream, error) {
	panic("soon")
}

// Close ends all connections; calls under way end with ErrClosed.
func (p *Pool) Close() error { panic("soon") }

// Stream is an answer in parts.
type Stream struct{}

// Next returns the next part, whose bulk is valid until the one after. At the
// end last is true, and the part is the handler's answer.
func (s *Stream) Next(head any) (bulk []byte, last bool, err error) { panic("soon") }

// Close ends the stream, early or not.
func (s *Stream) Close() error { panic("soon") }
