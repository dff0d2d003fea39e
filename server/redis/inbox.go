package redis

import "sync"

// inbox is how other goroutines talk to a loop.
type inbox struct {
	mu       sync.Mutex
	messages []message
	closed   bool // the loop is gone
	spare    []message
}

// message is one of: a connection to serve from now on, one to close, news of a
// pipe, a fetch that arrived, a function to run on the loop.
type message struct {
	adopt   *conn
	kill    *conn
	ready   readyConn
	fetched *park
	run     func()
}

// post hands m to the loop. It returns false if the loop has ended.
func (l *loop) post(m message) bool {
	l.inbox.mu.Lock()
	closed := l.inbox.closed
	if !closed {
		l.inbox.messages = append(l.inbox.messages, m)
	}
	l.inbox.mu.Unlock()
	if !closed {
		l.poller.wake()
	}
	return !closed
}

// takeInbox handles everything that was posted.
func (l *loop) takeInbox() {
	in := &l.inbox
	in.mu.Lock()
	messages := in.messages
	in.messages = in.spare[:0]
	in.mu.Unlock()
	for i, m := range messages {
		messages[i] = message{}
		switch {
		case m.adopt != nil:
			l.adopt(m.adopt)
		case m.kill != nil:
			l.killHere(m.kill)
		case m.ready.c != nil:
			l.pipeTold(m.ready)
		case m.fetched != nil:
			l.arrived = append(l.arrived, m.fetched)
		case m.run != nil:
			m.run()
		}
	}
	in.spare = messages[:0]
}

// shut closes the inbox and returns what nobody took.
func (in *inbox) shut() []message {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	left := in.messages
	in.messages = nil
	return left
}

// killHere closes a connection that another client named.
func (l *loop) killHere(c *conn) {
	switch {
	case c.loop.Load() != l:
		l.srv.kill(c) // It moved meanwhile.
	case c.net.closed:
	case !l.serves(c):
		l.srv.kill(c) // It is on its way here.
	default:
		l.close(c)
	}
}
