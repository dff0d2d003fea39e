package harness

import (
	"bufio"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/ostrodb/ostro/wire/resp"
)

// Conn is a client's connection. It sends what it is told and nothing else: no
// retries, no hidden commands.
type Conn struct {
	net      net.Conn
	w        *bufio.Writer
	r        *resp.ReplyReader
	patience time.Duration
}

// Dial connects to a server that serves.
func (s *Server) Dial() (*Conn, error) { return Connect(s.addr, Patience) }

// Connect connects to an address. Whatever takes longer than patience fails.
func Connect(addr string, patience time.Duration) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	return &Conn{net: c, w: bufio.NewWriterSize(c, 64<<10), r: resp.NewReplyReader(c), patience: patience}, nil
}

// Send queues a command; Flush sends what is queued.
func (c *Conn) Send(args ...string) error {
	var digits [24]byte
	line := func(mark byte, n int) {
		c.w.WriteByte(mark)
		c.w.Write(strconv.AppendInt(digits[:0], int64(n), 10))
		c.w.WriteString("\r\n")
	}
	line('*', len(args))
	for _, a := range args {
		line('$', len(a))
		c.w.WriteString(a)
		c.w.WriteString("\r\n")
	}
	return c.net.SetDeadline(time.Now().Add(c.patience))
}

// Flush sends what is queued.
func (c *Conn) Flush() error { return c.w.Flush() }

// Receive reads the next reply. Error replies are values.
func (c *Conn) Receive() (resp.Value, error) { return c.r.Read() }

// Do sends one command and reads its reply.
func (c *Conn) Do(args ...string) (resp.Value, error) {
	if err := c.Send(args...); err != nil {
		return resp.Value{}, err
	}
	if err := c.Flush(); err != nil {
		return resp.Value{}, err
	}
	return c.Receive()
}

// Close ends the connection.
func (c *Conn) Close() { _ = c.net.Close() }

// Text writes a reply on one line: (nil), [a b c], -ERR why.
func Text(v resp.Value) string {
	switch {
	case v.IsNull():
		return "(nil)"
	case v.Err() != nil:
		return "-" + v.Err().Error()
	case v.Kind != resp.Array:
		return v.Text()
	}
	elems := make([]string, len(v.Elems))
	for i := range v.Elems {
		elems[i] = Text(v.Elems[i])
	}
	return "[" + strings.Join(elems, " ") + "]"
}
