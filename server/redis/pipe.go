package redis

import (
	"sync"
	"syscall"
)

// pipeBytes is how much waits in each direction of a pipe before its source
// has to.
const pipeBytes = 256 << 10

// pipe takes the place of a socket for a connection whose bytes come from
// goroutines of our own: those that do TLS. To the loop it behaves like a
// socket. Receive and send do what they can and never block, and what epoll
// reports of a socket comes as a message instead, under the same rule: it is
// told once, and the loop looks again before it forgets.
//
//	client == TLS == two goroutines == pipe == loop
type pipe struct {
	tell func(events uint32) // posts to the loop; fixed before use
	over func()              // bounds what is left to do when the loop has closed; as tell

	mu      sync.Mutex
	room    sync.Cond // there is room in arrived, or the loop closed
	work    sync.Cond // there is something in waiting, or the loop closed
	arrived []byte    // from the client; the loop took the first taken bytes
	taken   int
	ended   bool   // nothing more will arrive
	gone    bool   // nor can anything be sent
	waiting []byte // for the client
	full    bool   // the loop found no room in waiting and wants to be told
	closed  bool   // the loop is done with it
}

func newPipe() *pipe {
	p := &pipe{}
	p.room.L, p.work.L = &p.mu, &p.mu
	return p
}

// offer hands bytes from the client over, when there is room. It returns
// false if nobody wants them any more.
func (p *pipe) offer(b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.arrived)-p.taken > pipeBytes && !p.closed {
		p.room.Wait()
	}
	if p.closed {
		return false
	}
	first := p.taken == len(p.arrived)
	p.arrived = append(p.arrived, b...)
	if first {
		p.tell(readable)
	}
	return true
}

// end says that nothing more will arrive; gone that nobody is left to answer.
func (p *pipe) end(gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.gone = p.gone || gone; p.gone {
		p.tell(readable | hungUp)
	} else {
		p.tell(readable)
	}
}

// next waits for bytes to send to the client. It takes back the buffer that it
// returned before, and returns nil when the loop has closed and all is sent.
func (p *pipe) next(spare []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.waiting) == 0 && !p.closed {
		p.work.Wait()
	}
	if len(p.waiting) == 0 {
		return nil
	}
	b := p.waiting
	p.waiting = spare[:0]
	if p.full {
		p.full = false
		p.tell(writable)
	}
	return b
}

// receive is a socket's, for the loop.
func (p *pipe) receive(b []byte) (int, syscall.Errno) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := copy(b, p.arrived[p.taken:])
	if n == 0 && !p.ended {
		return 0, syscall.EAGAIN
	}
	p.taken += n
	if p.taken == len(p.arrived) {
		p.arrived, p.taken = idleBuffer(p.arrived), 0
	}
	p.room.Signal()
	return n, 0
}

// send is a socket's, for the loop.
func (p *pipe) send(b []byte) (int, syscall.Errno) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(b), pipeBytes-len(p.waiting))
	if p.gone {
		return 0, syscall.EPIPE
	}
	if n <= 0 {
		p.full = true
		return 0, syscall.EAGAIN
	}
	p.waiting = append(p.waiting, b[:n]...)
	p.work.Signal()
	return n, 0
}

// idleBuffer is what is worth keeping of a buffer that is empty now.
func idleBuffer(b []byte) []byte {
	if cap(b) > tlsReadBytes {
		return nil
	}
	return b[:0]
}

// readable reports that a receive would return something, or the end.
func (p *pipe) readable() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken < len(p.arrived) || p.ended
}

// close is the loop's. What was sent still goes to the client, if that reads it soon.
func (p *pipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.over()
	p.room.Broadcast()
	p.work.Broadcast()
}

// readyConn is a connection with a pipe, and news of it.
type readyConn struct {
	c      *conn
	events uint32
}

// pipeTold takes a message about a pipe.
func (l *loop) pipeTold(r readyConn) {
	switch owner := r.c.loop.Load(); {
	case owner != l:
		owner.post(message{ready: r})
	case l.serves(r.c):
		l.tell(r.c, r.events)
	default: // It is on its way here, and will be looked at when it comes.
	}
}

// tell has c served in the next round. Several pieces of news are one event, as
// epoll has it: a round reads a connection once.
func (l *loop) tell(c *conn, events uint32) {
	if c.net.told == 0 {
		l.ready = append(l.ready, c)
	}
	c.net.told |= events
}

// servePipes serves the connections with pipes that have something to do.
func (l *loop) servePipes() {
	ready := l.ready
	l.ready = l.readySpare[:0]
	for i, c := range ready {
		ready[i] = nil
		if l.serves(c) {
			events := c.net.told
			c.net.told = 0
			l.serve(c, events)
			l.lookAgain(c)
		}
	}
	l.readySpare = ready[:0]
}

// lookAgain serves c in the next round too if its pipe has more to read.
func (l *loop) lookAgain(c *conn) {
	if c.pipe != nil && !c.net.closed && c.net.interest&readable != 0 && c.pipe.readable() {
		l.tell(c, readable)
	}
}
