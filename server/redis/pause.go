package redis

import "sync/atomic"

// pauseState is CLIENT PAUSE for the whole server.
type pauseState struct {
	until atomic.Int64 // unix milliseconds; 0: not paused
	all   atomic.Bool  // or only commands that write
}

// pauseView is what a loop knows of it, and the connections that wait there.
type pauseView struct {
	until int64 // 0: not paused
	all   bool
	conns []*conn
}

// pauseClients postpones commands, all or those that write, until a time.
func (s *Server) pauseClients(until int64, all bool) {
	s.pause.all.Store(all)
	s.pause.until.Store(until)
}

// unpauseClients ends a pause.
func (s *Server) unpauseClients() {
	s.pause.until.Store(0)
	for _, l := range s.startedLoops() {
		l.poller.wake()
	}
}

// lookAtPause notes at the start of a round whether there is a pause, and lets
// postponed connections go on when it is over.
func (l *loop) lookAtPause() {
	p, until := &l.pause, l.srv.pause.until.Load()
	if until <= l.now || l.stop {
		until = 0
	}
	p.until, p.all = until, l.srv.pause.all.Load()
	if until != 0 || len(p.conns) == 0 {
		return
	}
	for i, c := range p.conns {
		p.conns[i] = nil
		if !c.net.closed {
			l.unpark(c)
		}
	}
	p.conns = p.conns[:0]
}

// postpones reports whether a command has to wait for the end of the pause.
func (l *loop) postpones(c *conn, cmd *command) bool {
	return l.pause.all || cmd.mayWrite() || c.multi.active
}

// postpone puts the input of c from pos on aside until the pause is over.
func (l *loop) postpone(c *conn, pos int) {
	l.setInput(c, c.net.window[pos:])
	c.net.parked = true
	l.pause.conns = append(l.pause.conns, c)
}
