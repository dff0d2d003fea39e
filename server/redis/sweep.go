package redis

const sweepMillis = 100

// sweep closes clients that were idle for too long or that have not read
// their replies for too long, and tenants' links to other nodes that are idle. While the server shuts down it closes every
// client that has nothing under way.
func (l *loop) sweep() {
	if len(l.links) > 0 {
		l.closeIdleLinks()
	}
	timeout := l.srv.settings.timeoutMillis.Load()
	soft := l.srv.settings.outputSoft.Load()
	if timeout == 0 && soft == 0 {
		return
	}
	for i := len(l.conns) - 1; i >= 0; i-- {
		c := l.conns[i]
		if soft > 0 && c.unsent() > 0 && l.overOutputLimit(c) {
			continue
		}
		if timeout > 0 && !c.net.parked && !c.net.flying && !c.inner && l.now-c.lastSeen.Load() > timeout {
			l.close(c)
		}
	}
}

// drain stops reading and closes every connection as soon as all it sent is
// answered.
func (l *loop) drain() {
	l.stop = true
	l.closeListeners()
	for i := len(l.conns) - 1; i >= 0; i-- {
		c := l.conns[i]
		c.net.eof = true
		if c.finished() && c.net.held == 0 {
			l.close(c)
		} else {
			l.watch(c, c.net.interest&^readable)
		}
	}
}

// abort closes every connection, answered or not.
func (l *loop) abort() {
	l.stop = true
	for len(l.conns) > 0 {
		l.close(l.conns[len(l.conns)-1])
	}
}
