package redis

// adopt serves c from now on: a new connection, or one that another loop
// handed over.
func (l *loop) adopt(c *conn) {
	c.loop.Store(l)
	if l.stop {
		l.discard(c)
		return
	}
	if err := l.subscribe(c); err != nil {
		l.srv.log.Error("epoll refused a connection", "client", c.addr, "error", err)
		l.discard(c)
		return
	}
	c.net.slot = len(l.conns)
	l.conns = append(l.conns, c)
	l.num.Store(int64(len(l.conns)))
	l.lookAgain(c)
}

// subscribe makes the loop hear of what the client sends.
func (l *loop) subscribe(c *conn) error {
	c.net.interest = readable
	if c.pipe != nil {
		return nil
	}
	if err := l.poller.add(c.fd, readable); err != nil {
		return err
	}
	for c.fd >= len(l.byFD) {
		l.byFD = append(l.byFD, nil)
	}
	l.byFD[c.fd] = c
	return nil
}

// unsubscribe undoes subscribe.
func (l *loop) unsubscribe(c *conn) error {
	if c.pipe != nil {
		return nil
	}
	return l.poller.remove(c.fd)
}

// serves reports whether c is one of the loop's connections. It may be asked
// about any connection: one that moves away is not touched any more.
func (l *loop) serves(c *conn) bool {
	return c.loop.Load() == l && c.net.slot < len(l.conns) && l.conns[c.net.slot] == c
}

// forget stops serving c without closing it.
func (l *loop) forget(c *conn) {
	last := l.conns[len(l.conns)-1]
	l.conns[c.net.slot] = last
	last.net.slot = c.net.slot
	l.conns[len(l.conns)-1] = nil
	l.conns = l.conns[:len(l.conns)-1]
	if c.pipe == nil {
		l.byFD[c.fd] = nil
	}
	l.num.Store(int64(len(l.conns)))
}

// close ends a connection at once. Replies that were not sent are lost.
func (l *loop) close(c *conn) {
	if c.net.closed {
		return
	}
	l.forget(c)
	l.discard(c)
}

// discard closes a connection that no loop serves.
func (l *loop) discard(c *conn) {
	c.net.closed = true
	c.dropTask()
	c.giveBack()
	c.hangUp()
	l.srv.clients.remove(c)
	l.pool.put(c.net.in)
	c.net.in = nil
	l.pool.put(c.out.Swap(nil))
	c.net.sent = 0
	c.multi = multiState{}
	c.unpin()
	c.leave()
}

// movable reports that c can be served by another loop: nothing of it is
// under way here.
func (c *conn) movable() bool {
	n := &c.net
	return !n.waits() && !n.flying && c.pin == nil && !n.more && n.told == 0 && !n.eof && !n.queued && n.held == 0 && c.unsent() == 0 && n.failure == nil
}

// moveTo hands up to n connections over to another loop.
func (l *loop) moveTo(to *loop, n int) int {
	moved := 0
	for i := len(l.conns) - 1; i >= 0 && moved < n; i-- {
		c := l.conns[i]
		if !c.movable() {
			continue
		}
		if err := l.unsubscribe(c); err != nil {
			continue
		}
		l.forget(c)
		c.loop.Store(to)
		if !to.post(message{adopt: c}) {
			l.discard(c)
			continue
		}
		moved++
	}
	return moved
}
