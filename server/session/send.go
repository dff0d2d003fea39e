package session

import (
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/wire"
)

// buffer holds frames for one connection. The open results frame, if count
// is not 0, begins at start.
type buffer struct {
	b            []byte
	start, count int
	answers      int // results in all frames
}

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 16<<10)} }}

func newBuffer() *buffer { return buffers.Get().(*buffer) }

// keepBytes bounds what a buffer keeps for its next use.
const keepBytes = 1 << 20

func (b *buffer) free() {
	if cap(b.b) > keepBytes {
		return
	}
	*b = buffer{b: b.b[:0]}
	buffers.Put(b)
}

// add appends a result.
func (b *buffer) add(r *wire.Result) {
	if b.count == 0 {
		b.b, b.start = wire.BeginResults(b.b)
	}
	b.b = wire.AppendResult(b.b, r)
	b.count++
	b.answers++
}

// seal completes the open results frame.
func (b *buffer) seal() {
	if b.count > 0 {
		b.b = wire.EndResults(b.b, b.start, b.count)
		b.count = 0
	}
}

// send writes a buffer from the connection's reader, which may wait for its client. If
// another goroutine is writing, it gets the buffer instead.
func (c *conn) send(b *buffer) {
	c.traffic(0, len(b.b))
	c.mu.Lock()
	if c.writing || c.closed.Load() {
		c.enqueue(b)
		c.mu.Unlock()
		return
	}
	c.writing = true
	bytes := len(b.b)
	c.weigh(bytes)
	c.mu.Unlock()
	if _, err := c.net.Write(b.b); err != nil {
		c.close()
	}
	b.free()
	c.flush(bytes)
}

// post writes a buffer from a goroutine that must not wait.
func (c *conn) post(b *buffer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting -= b.answers
	c.relaxed.Broadcast()
	if c.writing || len(c.pending) > 0 || !c.writeNow(b) {
		c.enqueue(b)
	}
	if !c.writing && len(c.pending) > 0 {
		c.writing = true
		go c.flush(0)
	}
}

// wait counts operations that will be answered by post.
func (c *conn) wait(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting += n
}

// abandon drops what must not be told and cuts the connection: its client cannot
// know the outcome.
func (c *conn) abandon(b *buffer) {
	c.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting -= b.answers
	b.free()
}

// enqueue adds a buffer to what is to be written. The caller holds mu.
func (c *conn) enqueue(b *buffer) {
	if c.closed.Load() {
		b.free()
		return
	}
	c.pending = append(c.pending, b)
	c.weigh(len(b.b))
}

// flush writes until nothing is pending. Whoever set writing calls it, and says how many bytes it has written.
func (c *conn) flush(written int) {
	var group []*buffer
	for {
		c.mu.Lock()
		c.weigh(-written)
		written = 0
		for _, b := range c.pending {
			written += len(b.b)
		}
		group = append(group[:0], c.pending...)
		clear(c.pending)
		c.pending = c.pending[:0]
		if len(group) == 0 {
			c.writing = false
			c.relaxed.Broadcast()
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		if !c.writeAll(group) {
			c.close()
		}
	}
}

// joinBytes is up to where copying is cheaper than another system call.
const joinBytes = 64 << 10

// writeAll writes buffers, small ones with as few system calls as can be.
func (c *conn) writeAll(group []*buffer) bool {
	ok := true
	for i := 0; i < len(group); {
		b := group[i]
		for i++; i < len(group) && len(b.b)+len(group[i].b) <= joinBytes; i++ {
			b.b = append(b.b, group[i].b...)
			group[i].free()
		}
		if ok {
			_, err := c.net.Write(b.b)
			ok = err == nil
		}
		b.free()
	}
	clear(group)
	return ok
}

// writeNow gives a small buffer to the socket if that takes it at once, whole or in
// part; what is left of it is pending then. The caller holds mu, and nobody writes.
func (c *conn) writeNow(b *buffer) bool {
	if c.raw == nil || c.closed.Load() {
		return false
	}
	n := c.raw.write(b.b)
	if n < len(b.b) {
		b.b = b.b[:copy(b.b, b.b[n:])]
		return false
	}
	b.free()
	return true
}

// rawWriter writes to a socket without ever waiting for it.
type rawWriter struct {
	conn syscall.RawConn
	b    []byte
	n    int
	once func(fd uintptr) bool // made once, as the call needs a function
}

func rawWriterOf(c net.Conn) *rawWriter {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	w := &rawWriter{conn: raw}
	w.once = func(fd uintptr) bool {
		n, _ := unix.Write(int(fd), w.b) // Negative if there was an error.
		w.n = max(n, 0)
		return true
	}
	return w
}

// write returns how many bytes the socket took. What is wrong with it shows in the
// next usual write.
func (w *rawWriter) write(b []byte) int {
	w.b, w.n = b, 0
	_ = w.conn.Write(w.once)
	w.b = nil
	return w.n
}
