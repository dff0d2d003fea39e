package nic

import (
	"time"

	"github.com/ostrodb/ostro/fabric"
)

// plan is what a test wants to go wrong with one queue pair's requests.
type plan struct {
	cut     bool // break the connection when left is used up
	left    uint64
	held    bool
	delay   time.Duration
	delayed uint64 // index+1 of the request whose delay has begun
}

// spend takes up to n bytes of what may still be placed.
func (p *plan) spend(n uint64) uint64 {
	if !p.cut {
		return n
	}
	n = min(n, p.left)
	p.left -= n
	return n
}

func (p *plan) cutNow() bool { return p.cut && p.left == 0 }

// holds tells whether the fetched request may not go on yet.
func (p *plan) holds(e *Engine, q *qp) bool {
	switch {
	case p.held:
		return true
	case p.delay <= 0 || q.cur.Op == fabric.OpWait:
		return false
	case p.delayed != q.next+1:
		p.delayed = q.next + 1
		e.setDeadline(q, p.delay)
		return true
	case q.timed && time.Now().Before(q.deadline):
		return true
	}
	e.untime(q)
	return false
}

// Fault is something to go wrong with a queue pair's requests.
type Fault struct {
	// Cut breaks the connection when CutAfter more bytes have landed, in the middle
	// of a request if they end there.
	Cut      bool
	CutAfter uint64
	// Hold stops the queue until a Fault without it.
	Hold bool
	// Delay holds back each request for so long.
	Delay time.Duration
}

// Inject makes a queue pair's requests go wrong from now on.
func (e *Engine) Inject(number uint32, f Fault) error {
	err := fabric.ErrClosed
	if gone := e.do(func() {
		if q := e.qp(number); q != nil {
			q.plan = &plan{cut: f.Cut, left: f.CutAfter, held: f.Hold, delay: f.Delay}
			e.enqueue(q)
			err = nil
		}
	}); gone != nil {
		return gone
	}
	return err
}
