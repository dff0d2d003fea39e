package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
)

// PoolOptions say how a Pool is made.
type PoolOptions struct {
	Node   view.NodeID // who calls
	Secret []byte      // what all nodes of the cluster share; required
	// Address tells where a node can be reached now; an empty one or an error means nowhere.
	Address func(view.NodeID) (string, error)
	// Dial makes a connection to such an address; nil: by TCP.
	Dial        func(ctx context.Context, addr string) (net.Conn, error)
	TLS         *tls.Config   // nil: none
	DialTimeout time.Duration // default 2 s
}

// Pool calls other nodes. Connections are made when they are needed, and again
// when they ended.
type Pool struct {
	o      PoolOptions
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	nodes  map[view.NodeID]*node
	closed bool
}

// bulkFrom is the size from which a request travels on a connection of its own.
const bulkFrom = 32 << 10

// NewPool makes a pool without connections.
func NewPool(o PoolOptions) (*Pool, error) {
	switch {
	case len(o.Secret) == 0:
		return nil, errors.New("peer: a pool needs the secret that all nodes of the cluster share")
	case o.Address == nil:
		return nil, errors.New("peer: a pool must be told where nodes are")
	}
	if err := o.Node.Check(); err != nil {
		return nil, err
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = 2 * time.Second
	}
	if o.Dial == nil {
		o.Dial = dialTCP
	}
	p := &Pool{o: o, nodes: map[view.NodeID]*node{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// Call sends a request and waits for its answer or for the end of ctx, whose deadline
// the handler has, too. head and answer are JSON, or Raw and *Raw, or nil.
// A large bulk travels on a connection of its own.
func (p *Pool) Call(ctx context.Context, to view.NodeID, method string, head any, bulk []byte, answer any) (answerBulk []byte, err error) {
	n, err := p.node(to)
	if err != nil {
		return nil, err
	}
	f := frame{kind: kindRequest, method: method, bulk: bulk, millis: millis(ctx)}
	if f.head, err = encodeHead(head); err != nil {
		return nil, err
	}
	var a result
	if len(bulk) >= bulkFrom {
		a = n.callAlone(ctx, &f)
	} else {
		a = n.callShared(ctx, &f)
	}
	if a.err != nil {
		return nil, a.err
	}
	return a.bulk, decodeHead(a.head, answer)
}

// Go is Call without waiting, on the connection that calls to the node share; where there is
// none it fails with ErrUnreachable, for it makes none. done is called once, by the
// connection's reader, and must be quick; what it gets is its own. Requests are sent in
// the order of the calls. ctx gives the request its deadline; when it is over
// nothing is cut short but by Drop.
func (p *Pool) Go(ctx context.Context, to view.NodeID, method string, head any, bulk []byte, done func(head, bulk []byte, err error)) {
	n, err := p.node(to)
	f := frame{kind: kindRequest, method: method, bulk: bulk, millis: millis(ctx)}
	if err == nil {
		f.head, err = encodeHead(head)
	}
	if err == nil {
		err = n.start(&f, done)
	}
	if err != nil {
		done(nil, nil, err)
	}
}

// Stream sends a request whose answer comes in parts. The stream ends with ctx.
func (p *Pool) Stream(ctx context.Context, to view.NodeID, method string, head any) (*Stream, error) {
	n, err := p.node(to)
	if err != nil {
		return nil, err
	}
	f := frame{kind: kindRequest, method: method, millis: millis(ctx)}
	if f.head, err = encodeHead(head); err != nil {
		return nil, err
	}
	return n.stream(ctx, &f)
}

// Drop ends the connections with a node, as when it does not answer: calls under
// way end with ErrLost. The next call makes a new one.
func (p *Pool) Drop(to view.NodeID) {
	p.mu.Lock()
	n := p.nodes[to]
	p.mu.Unlock()
	if n != nil {
		n.drop(ErrLost)
	}
}

// Close ends all connections; calls under way end with ErrClosed.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	nodes := p.nodes
	p.mu.Unlock()
	p.cancel()
	for _, n := range nodes {
		n.drop(ErrClosed)
	}
	for _, n := range nodes {
		n.readers.Wait()
	}
	return nil
}

func (p *Pool) node(id view.NodeID) (*node, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	n := p.nodes[id]
	if n == nil {
		n = newNode(p, id)
		p.nodes[id] = n
	}
	return n, nil
}

// millis is the time that ctx leaves, rounded up; 0 if it has no end.
func millis(ctx context.Context) uint32 {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	left := time.Until(deadline).Milliseconds() + 1
	return uint32(min(max(left, 1), 1<<31))
}

// result is how a call ended.
type result struct {
	head, bulk []byte
	err        error
}
