package redis

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/wire/resp"
)

// read takes what the client sent, once, and executes all complete commands.
func (l *loop) read(c *conn) {
	n := &c.net
	if n.pending > 0 {
		panic("redis: a connection is read while its commands wait in the batch")
	}
	own := n.state.Need() > joinBytes
	space, joined := l.space(c, own)
	if own && !l.mayHold(c) {
		return
	}
	got, errno := c.receive(space)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return
	case errno != 0:
		l.close(c)
		return
	case got == 0:
		l.endOfInput(c)
		return
	}
	l.tally.bytesIn += int64(got)
	c.bytesIn.Store(c.bytesIn.Load() + int64(got))
	if own {
		n.in = n.in[:len(n.in)+got]
		if len(n.in) < n.state.Need() {
			c.show(l.now, nil)
			l.checkQuery(c)
			return
		}
		l.execute(c, n.in, true)
		return
	}
	input := l.window[l.windowEnd : l.windowEnd+joined+got]
	l.windowEnd += len(input)
	if joined > 0 {
		l.dropInput(c)
	}
	l.execute(c, input, false)
}

// space is where the next input of c goes. A large command grows in the
// connection's own buffer. Everything else goes into the window, behind a copy
// of what the connection has of a small command, so that one read takes as much
// as usual; joined is the length of that copy.
func (l *loop) space(c *conn, own bool) (space []byte, joined int) {
	if own {
		return c.net.room(), 0
	}
	if len(l.window)-l.windowEnd < readBytes {
		l.flushBatch() // its keys lie in the window
		l.windowEnd = 0
	}
	free := l.window[l.windowEnd : l.windowEnd+readBytes]
	joined = copy(free, c.net.in)
	return free[joined:], joined
}

// endOfInput handles a client that closed, or that closed its sending side
// and still waits for replies.
func (l *loop) endOfInput(c *conn) {
	if c.finished() {
		l.close(c)
		return
	}
	c.net.eof = true
	l.watch(c, c.net.interest&^readable)
}

// execute runs the commands in input, which is the connection's own buffer or
// a part of the window, and keeps what it could not run.
func (l *loop) execute(c *conn, input []byte, own bool) {
	l.begin()
	l.enqueue(c)
	l.asked(c)
	if c.out.Cap() == 0 {
		c.out.Swap(l.pool.get())
	}
	c.net.window = input
	before := l.fuelBefore(c)
	used := l.commands(c, input, before)
	l.endCalls()
	c.net.fuel = l.call.caller.Used() - before
	if c.net.pending > 0 && (own || used < len(input)) {
		// Keys in the batch are about to move, or a later park would have to
		// find the input in two places.
		l.flushBatch()
	}
	if !c.net.parked {
		l.keep(c, input[used:], own)
	}
	if c.closing {
		c.net.eof = true
	}
	if own {
		c.net.window = nil // or an idle connection would keep its last long command
	}
	c.show(l.now, l.last)
}

// commands runs commands until the input ends, is broken, or the connection
// may not go on. Its slice is counted from the fuel before. It returns how much
// of the input is done with.
func (l *loop) commands(c *conn, input []byte, before int64) int {
	l.parser.MaxBulk = c.maxArg()
	l.parser.Unauthenticated = !c.authenticated && l.srv.authRequired()
	l.call.conn, l.call.out = c, &c.out
	l.ahead.begin()
	pos := 0
	for pos < len(input) {
		size, err := l.parser.Next(input[pos:], &c.net.state)
		if err != nil {
			l.protocolError(c, err)
			return len(input)
		}
		if size == 0 {
			return pos
		}
		if len(l.parser.Args) > 0 && !l.command(c, pos, size) {
			return pos
		}
		pos += size
		if c.closing {
			return len(input)
		}
		if pos < len(input) && (c.unsent() > replySliceBytes || l.call.caller.Used()-before > l.fuel.each) {
			l.continueLater(c)
			return pos
		}
	}
	return pos
}

// keep stores input that could not be executed yet in the connection's buffer.
func (l *loop) keep(c *conn, rest []byte, own bool) {
	n := &c.net
	switch {
	case len(rest) == 0:
		if own {
			l.dropInput(c)
		}
		return
	case own:
		n.in = n.in[:copy(n.in, rest)]
	default:
		n.in = append(l.pool.get(), rest...)
	}
	l.checkQuery(c)
}

// dropInput gives the connection's input buffer back.
func (l *loop) dropInput(c *conn) {
	if cap(c.net.in) > keepBufferBytes { // or these would keep it alive
		l.parser.Forget()
		l.batch.forget()
	}
	l.pool.put(c.net.in)
	c.net.in = nil
	c.queryBytes.Store(0)
	_ = c.hold() // Nothing is never too much.
}

// checkQuery closes a client that sends more than it may.
func (l *loop) checkQuery(c *conn) {
	c.queryBytes.Store(int64(len(c.net.in)))
	if int64(len(c.net.in)) > c.maxQuery() {
		l.srv.totals.queryLimitClosed.Add(1)
		l.srv.log.Warn("closing client that reached max query buffer length", "client", c.addr, "id", c.id, "bytes", len(c.net.in))
		l.close(c)
		return
	}
	l.mayHold(c)
}

// mayHold tells whether the connection's tenant may have as much input waiting as it has. If not, its client is told, and the
// connection closes.
func (l *loop) mayHold(c *conn) bool {
	err := c.hold()
	if err == nil {
		return true
	}
	l.srv.totals.queryLimitClosed.Add(1)
	l.srv.log.Warn("closing client whose tenant has too many bytes of unfinished commands", "client", c.addr, "id", c.id, "tenant", c.account().Tenant().Name)
	l.dropInput(c)
	c.net.more = false
	l.begin()
	l.enqueue(c)
	if c.out.Cap() == 0 {
		c.out.Swap(l.pool.get())
	}
	l.lastWords(c, "QUOTA "+err.Error())
	c.net.eof = true
	return false
}

// protocolError answers broken input. What comes behind it cannot be
// understood, so the connection closes.
func (l *loop) protocolError(c *conn, err error) {
	if c.net.pending > 0 {
		l.flushBatch()
		if c.net.parked {
			return // The commands before it come first; it will be found again.
		}
	}
	var protocol resp.ProtocolError
	if !errors.As(err, &protocol) {
		panic("redis: the parser returned " + err.Error())
	}
	l.srv.totals.protocolErrors.Add(1)
	l.srv.log.Info("protocol error from client", "client", c.addr, "id", c.id, "error", string(protocol))
	l.lastWords(c, "ERR "+protocol.Error())
}

// lastWords tells the client why its connection closes, behind the replies that it still gets.
func (l *loop) lastWords(c *conn, text string) {
	start := c.out.Len()
	c.out.Error(text)
	if c.net.flying {
		l.tuck(c, start)
	}
	c.closing = true
}

// setInput replaces the connection's waiting input by rest, which may be a
// part of it.
func (l *loop) setInput(c *conn, rest []byte) {
	n := &c.net
	n.state = resp.State{}
	if n.in == nil {
		n.in = l.pool.get()
	}
	n.in = append(n.in[:0], rest...)
}
