package session

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/server/call"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/tenant/sched"
	"github.com/ostrodb/ostro/wire"
)

const (
	readBytes = 64 << 10 // a connection's usual buffer
	// A round whose results grow beyond this ends, so that the client gets some and
	// others have their turn.
	sliceBytes = 256 << 10
	// A connection with so many bytes unsent reads nothing until its client has.
	unsentBytes = 16 << 20

	helloPatience = 10 * time.Second
	partPatience  = 2 * time.Second
)

// conn is one session's connection. Its reader goroutine owns in; results reach the
// client through send and post, from any goroutine.
type conn struct {
	srv *Server
	net net.Conn
	raw *rawWriter // nil where there is no plain socket
	w   *worker    // the one it is usually executed on

	in            []byte // received and not executed: in[start:]
	start         int
	client        uint64
	counted       int64          // bytes of in that its tenant was told of
	purse         tenant.Purse   // a tenant's; used by who executes its batches
	chosen, known uint64         // the id of who the last batch was from, and what it is in the store; see writer
	told          told           // what the store was last told of that client
	first         uint32         // the store's number of its table 0
	tables        uint32         // it has so many
	shelf         *library.Shelf // what its tenant has installed; nil: the server has no functions
	share         *sched.Share   // its tenant's part of the scheduler
	site          *call.Site     // of its calls, as its reader executes them; nil: there were none

	installing atomic.Int64 // changes of modules under way

	mu      sync.Mutex
	relaxed sync.Cond // less waits than before
	pending []*buffer // to be written
	unsent  int       // bytes of pending, and of what is being written
	unread  int64     // of these, what its tenant was told of
	left    bool      // its tenant is charged for nothing any more
	waiting int       // operations that are held or parked
	writing bool
	ending  bool // Shutdown has come
	closed  atomic.Bool
}

func newConn(s *Server, c net.Conn) *conn {
	cn := &conn{srv: s, net: c, raw: rawWriterOf(c)}
	cn.relaxed.L = &cn.mu
	if n := len(s.workers); n > 0 {
		cn.w = s.workers[int(s.turn.Add(1))%n]
	}
	return cn
}

// enter reads the magic into room. What is no native stream is closed.
func (s *Server) enter(c net.Conn, room []byte) bool {
	_ = c.SetReadDeadline(time.Now().Add(helloPatience)) // A connection that cannot fails to read.
	if _, err := io.ReadFull(c, room); err != nil || string(room) != wire.Magic {
		_ = c.Close()
		return false
	}
	return true
}

// serve reads and executes until the connection ends.
func (c *conn) serve() {
	defer c.leave()
	defer c.close()
	err := c.greet()
	for err == nil {
		err = c.turn()
	}
	if !errors.Is(err, errEnding) {
		c.part(err)
		return
	}
	c.drain()
	c.part(&wire.Goodbye{Reason: wire.ReasonStopping, Text: "the server is stopping"})
}

// errEnding says that Shutdown wants the connection to end.
var errEnding = errors.New("the server ends the session")

// greet takes the hello and answers it.
func (c *conn) greet() error {
	_ = c.net.SetReadDeadline(time.Now().Add(helloPatience))
	body, err := c.frame(wire.TypeHello, wire.MaxHelloBytes)
	if err != nil {
		return err
	}
	hello, err := wire.DecodeHello(body)
	if err != nil {
		return err
	}
	if err := c.identify(&hello); err != nil {
		return err
	}
	if lib := c.srv.opts.Functions; lib != nil {
		c.shelf, c.share = lib.Shelf(c.purse.Account()), c.srv.opts.Tenants.Share(c.purse.Account())
	}
	c.client = hello.Client
	_ = c.net.SetReadDeadline(time.Time{})
	o := &c.srv.opts
	b := wire.AppendWelcome(nil, &wire.Welcome{
		Version: wire.Version, MaxFrame: uint32(c.maxFrame()), MaxOps: uint32(c.maxOps()),
		LeaseMillis: uint32(c.srv.st.Options().KeepResults.Milliseconds()), FirstTable: c.first, Node: []byte(o.Node),
	})
	_, err = c.net.Write(wire.AppendMap(b, c.srv.gate.Routing().Map))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending { // It came while the deadline was the hello's.
		return errEnding
	}
	return err
}

// local tells whether an address is this machine's own.
func local(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// frame reads until a whole frame, of type want, is there.
func (c *conn) frame(want wire.Type, limit int) ([]byte, error) {
	for {
		t, body, n, need, err := wire.Next(c.in[c.start:], limit)
		switch {
		case err != nil:
			return nil, err
		case n > 0 && t != want:
			return nil, &wire.Goodbye{Reason: wire.ReasonMalformed, Text: "a session begins with a hello"}
		case n > 0:
			c.start += n
			return body, nil
		}
		if err := c.read(need); err != nil {
			return nil, err
		}
	}
}

// turn executes what has arrived, or reads more.
func (c *conn) turn() error {
	c.breathe()
	if c.closed.Load() {
		return net.ErrClosed
	}
	_, _, n, need, err := wire.Next(c.in[c.start:], c.maxFrame())
	switch {
	case err != nil:
		return err
	case n == 0:
		return c.read(need)
	}
	return c.round()
}

// breathe waits while too much of the connection waits already.
func (c *conn) breathe() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for (c.waiting > c.maxOps() || c.slowReader()) && !c.closed.Load() {
		c.relaxed.Wait()
	}
}

// read takes what the client has sent. The frame at the front will have need bytes; the
// buffer grows with what has arrived, never at once to what was announced.
func (c *conn) read(need int) error {
	left := len(c.in) - c.start
	switch {
	case left == 0 && cap(c.in) > readBytes:
		c.in, c.start = make([]byte, 0, readBytes), 0
	case c.start > 0:
		copy(c.in, c.in[c.start:])
		c.in, c.start = c.in[:left], 0
	}
	if cap(c.in)-left < readBytes/4 || cap(c.in) == 0 {
		grown := make([]byte, left, max(readBytes, min(2*cap(c.in), need+readBytes/4)))
		copy(grown, c.in)
		c.in = grown
	}
	if err := c.hold(); err != nil {
		return err
	}
	n, err := c.net.Read(c.in[left:cap(c.in)])
	c.in = c.in[:left+n]
	if n > 0 {
		return nil
	}
	if err != nil && c.isEnding() {
		return errEnding
	}
	return err
}

func (c *conn) isEnding() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending
}

// finish lets the reader stop at once; what it has executed is still answered.
func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	_ = c.net.SetReadDeadline(time.Unix(1, 0)) // A connection that cannot is closed soon anyway.
}

// drain waits until nothing of the connection waits any more.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for (c.waiting > 0 || c.writing || len(c.pending) > 0) && !c.closed.Load() {
		c.relaxed.Wait()
	}
}

// part tells the client why the session ends, if that can be told, and closes it.
func (c *conn) part(err error) {
	defer c.close()
	var bye *wire.Goodbye
	if !errors.As(err, &bye) {
		if !malformed(err) {
			return
		}
		bye = &wire.Goodbye{Reason: wire.ReasonMalformed, Text: err.Error()}
	}
	c.mu.Lock()
	busy := c.writing
	c.mu.Unlock()
	if busy || c.closed.Load() {
		return // Half a frame may be under way.
	}
	_ = c.net.SetWriteDeadline(time.Now().Add(partPatience))
	_, _ = c.net.Write(wire.AppendGoodbye(nil, bye.Reason, bye.Text)) // Whoever it was may be gone.
}

// malformed tells errors of decoding from those of the connection.
func malformed(err error) bool { return errors.Is(err, wire.ErrMalformed) }

// close cuts the connection.
func (c *conn) close() {
	if c.closed.Swap(true) {
		return
	}
	_ = c.net.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.pending {
		c.weigh(-len(b.b))
	}
	c.pending = nil
	c.relaxed.Broadcast()
}
