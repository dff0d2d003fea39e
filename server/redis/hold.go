package redis

import "github.com/ostrodb/ostro/engine/store"

// hold is a round whose replies wait until what it wrote or read is durable.
// The loop goes on serving meanwhile.
//
// Invariant: holds are released in order, and a connection with replies in
// one gets no reply past it. So its replies keep their order even when a
// later round needs to wait for nothing.
//
// A connection that did nothing in a round but to GET what is durable is sure, and does not wait: with many connections most
// rounds have a write of somebody, and reads would be as slow as writes are. One that did anything else waits even if it has no
// reply yet, as in the midst of an EXEC or behind what another node answers: the reply comes in a later round, whose ticket does
// not stand for what this one wrote.
type hold struct {
	ticket store.Ticket
	conns  []heldReplies
}

// unsure is conn.net.sure of a connection that has to wait with its round, whatever its replies are.
const unsure = -1

// heldReplies are a connection's replies up to an end, see conn.replied.
type heldReplies struct {
	c     *conn
	end   int64
	asked int64 // see conn.asked
}

// sendOrHold sends the round's replies, or keeps back those that must wait.
func (l *loop) sendOrHold(t store.Ticket) {
	durable := l.sess.Durable(t)
	l.settleExposed() // After it: what is sent was durable while the lease was alive.
	h := hold{ticket: t}
	for i, c := range l.active {
		l.active[i] = nil
		c.net.queued, c.net.exposed = false, false
		sure := c.net.sure == c.replied()
		c.net.sure = c.replied()
		switch {
		case c.net.closed:
		case (durable || sure) && c.net.held == 0:
			c.net.released = c.replied()
			l.answered(c)
			l.write(c)
		default:
			if h.conns == nil {
				h.conns = l.spareHold()
			}
			c.net.held++
			h.conns = append(h.conns, heldReplies{c, c.replied(), c.net.asked})
			c.net.asked = 0
		}
	}
	l.active = l.active[:0]
	if h.conns != nil {
		l.held = append(l.held, h)
		l.releaseHeld() // It may be durable by now; if not, this asks to be told.
	}
}

// releaseHeld sends the replies of all rounds that are durable now.
func (l *loop) releaseHeld() {
	n := 0
	for n < len(l.held) && l.sess.Durable(l.held[n].ticket) {
		if n == 0 && l.srv.cfg.Cluster != nil && !l.stillAlive() {
			l.dropUnanswered()
			return
		}
		conns := l.held[n].conns
		for i, r := range conns {
			conns[i] = heldReplies{}
			r.c.net.held--
			if !r.c.net.closed {
				r.c.net.released = r.end
				l.released(r.asked)
				l.write(r.c)
			}
		}
		l.spare = append(l.spare, conns[:0])
		n++
	}
	if n > 0 {
		left := copy(l.held, l.held[n:])
		clear(l.held[left:])
		l.held = l.held[:left]
	}
	if len(l.held) > 0 && l.srv.store.Health() != nil {
		l.dropHeld()
	}
}

// dropHeld closes the connections whose replies wait for a sync that failed or
// must not leave any more: nobody knows whether what they wrote will stay, and it
// never will be known while this process lives.
func (l *loop) dropHeld() {
	for _, h := range l.held {
		for _, r := range h.conns {
			r.c.net.held--
			if !r.c.net.closed {
				l.close(r.c)
			}
		}
	}
	clear(l.held)
	l.held = l.held[:0]
}

// durableMoved is called from another goroutine, some time after the session
// had to say that something is not durable.
func (l *loop) durableMoved() {
	l.moved.Store(true)
	if l.asleep.Load() {
		l.poller.wake()
	}
}

func (l *loop) spareHold() []heldReplies {
	n := len(l.spare)
	if n == 0 {
		return make([]heldReplies, 0, 16)
	}
	s := l.spare[n-1]
	l.spare = l.spare[:n-1]
	return s
}
