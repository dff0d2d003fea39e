package redis

import (
	"golang.org/x/sys/unix"
)

const compactBytes = 1 << 20 // sent bytes worth moving the rest of a buffer for

// write sends what may be sent of a connection's replies, as far as the socket
// takes it, and closes the connection when all is done and it should end.
func (l *loop) write(c *conn) {
	n := &c.net
	for end := int(n.released - n.gone); n.sent < end; {
		put, errno := c.send(c.out.Bytes()[n.sent:end])
		if errno == unix.EINTR {
			continue
		}
		if errno == unix.EAGAIN {
			break
		}
		if errno != 0 {
			l.close(c)
			return
		}
		n.sent += put
		l.tally.bytesOut += int64(put)
		c.bytesOut.Store(c.bytesOut.Load() + int64(put))
	}
	if n.sent == c.out.Len() {
		l.allSent(c)
		return
	}
	l.someUnsent(c)
}

// allSent gives the reply buffer back.
func (l *loop) allSent(c *conn) {
	n := &c.net
	n.gone += int64(n.sent)
	n.sent = 0
	n.softSince = 0
	l.pool.put(c.out.Swap(nil))
	if c.lent != nil && c.resume.errand == nil {
		c.giveBack()
	}
	if c.outputBytes.Load() != 0 {
		c.outputBytes.Store(0)
		l.leaveUnread(c, 0)
	}
	if n.eof && c.finished() {
		l.close(c)
		return
	}
	l.watch(c, n.interest&^writable)
	l.unpause(c)
}

// someUnsent waits for the client to read, or gives up on it.
func (l *loop) someUnsent(c *conn) {
	n := &c.net
	if n.sent > compactBytes && n.sent > c.out.Len()/2 {
		rest := c.unsent()
		copy(c.out.Bytes(), c.out.Bytes()[n.sent:])
		c.out.Truncate(rest)
		n.gone += int64(n.sent)
		n.sent = 0
	}
	c.outputBytes.Store(int64(c.unsent()))
	if n.gone+int64(n.sent) < n.released {
		l.watch(c, n.interest|writable)
	}
	if l.overOutputLimit(c) || l.leaveUnread(c, int64(c.unsent())) {
		return
	}
	if c.slowReader() {
		n.paused = true
	} else {
		l.unpause(c)
	}
}

// slice ends the turn of a connection with many replies: its input from pos on
// waits for the next round.
func (l *loop) slice(c *conn, pos int) {
	l.setInput(c, c.net.window[pos:])
	c.net.parked = true
	l.sliced = append(l.sliced, c)
}

// unslice gives those connections their next turn.
func (l *loop) unslice() {
	for i, c := range l.sliced {
		l.sliced[i] = nil
		if !c.net.closed {
			l.unpark(c)
		}
	}
	l.sliced = l.sliced[:0]
}

// unpause lets a connection go on whose client has read enough.
func (l *loop) unpause(c *conn) {
	n := &c.net
	if !n.paused {
		return
	}
	n.paused = false
	if len(n.in) > 0 && !n.parked {
		l.continueLater(c)
	}
	if !n.eof && !l.stop {
		l.watch(c, n.interest|readable)
	}
}

// overOutputLimit closes a client that lets too many replies wait.
func (l *loop) overOutputLimit(c *conn) bool {
	set, unsent := &l.srv.settings, int64(c.unsent())
	hard, soft := set.outputHard.Load(), set.outputSoft.Load()
	over := hard > 0 && unsent > hard
	if soft > 0 && unsent > soft {
		if c.net.softSince == 0 {
			c.net.softSince = l.now
		}
		over = over || l.now-c.net.softSince > set.outputSecs.Load()*1000
	} else {
		c.net.softSince = 0
	}
	if over {
		l.srv.totals.outputLimitClosed.Add(1)
		l.srv.log.Warn("closing client that does not read its replies: output buffer limit reached", "client", c.addr, "id", c.id, "bytes", unsent)
		l.close(c)
	}
	return over
}

// watch changes what epoll reports of a connection.
func (l *loop) watch(c *conn, interest uint32) {
	if c.net.interest == interest || c.net.closed {
		return
	}
	more := interest &^ c.net.interest
	c.net.interest = interest
	if c.pipe != nil {
		if more&readable != 0 {
			l.lookAgain(c)
		}
		return
	}
	if err := l.poller.modify(c.fd, interest); err != nil {
		l.srv.log.Error("epoll refused a change; closing the connection", "client", c.addr, "error", err)
		l.close(c)
	}
}
