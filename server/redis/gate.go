package redis

// gate decides whether a command that stands at pos of the input may run here
// and now, by the routing that the round began with. If not, it has been
// answered, or c was parked.
func (l *loop) gate(c *conn, cmd *command, args [][]byte, pos int) bool {
	rt := l.routeOf(c, cmd, args)
	// Functions find keys that nobody has named.
	data := rt.slot >= 0 || rt.whole || cmd == commandExec || cmd.flags&flagFunction != 0
	queued := c.multi.active && cmd.flags&flagDirect == 0
	if data && !l.lease.alive {
		l.refuse(c, cmd, errLeaseLost)
		return false
	}
	if pass, handled := l.proxies(c, cmd, args, rt, queued); handled {
		return pass
	}
	switch {
	case rt.ruling == await && !queued && !c.flushes(cmd):
		return l.gateWaits(c, cmd, pos)
	case rt.ruling == moved || rt.ruling == ask:
		l.srv.totals.redirected.Add(1)
		l.refuse(c, cmd, l.routing.redirection(rt, c.tls))
	case rt.ruling == refuse && rt.text == "":
		c.endMulti() // What EXEC watched has left: nobody here knows whether it changed.
		c.out.NullArray()
	case rt.ruling == refuse:
		l.refuse(c, cmd, rt.text)
	default:
		if data && !queued {
			l.expose(c)
		}
		if l.noting != nil && rt.slot >= 0 {
			l.noting.Note(rt.place)
		}
		return true
	}
	return false
}

// flushes tells whether cmd is a flush that has begun: it sees by itself to what is recovered or changes hands since, and is
// only to be answered.
func (c *conn) flushes(cmd *command) bool {
	return c.resume.errand != nil && cmd.onDatabase() && cmd.flags&flagWrite != 0
}

// refuse answers a command that may not run here. As in Redis, EXEC ends its
// transaction with it, and any other command spoils its own.
func (l *loop) refuse(c *conn, cmd *command, text string) {
	c.net.waitUntil = 0
	flushes := c.resume.errand != nil && (cmd.onDatabase() || cmd == commandExec)
	if c.resume.exec.next > 0 || flushes {
		// A part has run and the rest cannot: there is no true answer.
		c.closing = true
		return
	}
	c.multi.dirty = c.multi.dirty || c.multi.active
	if cmd == commandExec {
		c.endMulti()
	}
	c.dropTask()
	c.resume = resumption{}
	c.out.Error(text)
	l.tally.refused(cmd, text)
}

// gateWaits parks c until the routing changes. A command that has waited for
// too long is refused.
func (l *loop) gateWaits(c *conn, cmd *command, pos int) bool {
	n := &c.net
	if n.waitUntil == 0 {
		l.srv.totals.waited.Add(1)
		n.waitUntil = l.now + l.srv.cfg.ClusterWait.Milliseconds()
	}
	// Behind a command that another node forwarded stand those of many clients:
	// it waits there instead.
	if l.now >= n.waitUntil || l.stop || c.inner {
		l.refuse(c, cmd, errRecovering)
		return false
	}
	l.setInput(c, n.window[pos:])
	n.parked = true
	l.waiting = append(l.waiting, c)
	l.waitUntil = min(l.waitUntil, n.waitUntil)
	return false
}

// goOnWaiting lets all that waits try again.
func (l *loop) goOnWaiting() {
	waiting := l.waiting
	l.waiting, l.waitUntil = nil, never
	for _, c := range waiting {
		if !c.net.closed {
			l.unpark(c)
		}
	}
}
