package group

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ostrodb/ostro/fabric"
)

// Heartbeats go from the client to each replica: a WRITE of a number that grows,
// by the connection that carries no operations. One is the sign of life of two:
//
//	its completion tells the client that the replica's NIC lives; its program need not
//	the number tells the replica's program that the client lives
//
// Either side gives the group up after Spec.Misses intervals without a sign. It
// counts intervals that it has seen pass, so one that was itself held up does
// not take that for the other one's silence.

// pulses are the client's heartbeats.
//
// Invariant: a word is the NIC's while its WRITE is in flight.
type pulses struct {
	mem *fabric.Memory
	reg fabric.Region

	mu     sync.Mutex
	flying [MaxReplicas]bool
	missed [MaxReplicas]int
	closed bool
}

func newPulses(dom fabric.Domain) (*pulses, error) {
	mem, err := fabric.NewMemory(MaxReplicas * wordBytes)
	if err != nil {
		return nil, err
	}
	p := &pulses{mem: mem}
	p.reg, err = dom.Register(mem, fabric.LocalWrite)
	return p, err
}

// beat sends the next heartbeat to replica i, if the last one has arrived. It
// tells how many intervals have passed without a sign of life.
func (p *pulses) beat(i int, q fabric.QP, to fabric.RegionInfo) (missed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0
	}
	if !p.flying[i] {
		word(p.mem, i).Add(1)
		err := q.Post(fabric.Write(to.At(0), p.reg.Piece(uint64(i*wordBytes), wordBytes)).Signal(0))
		p.flying[i] = err == nil // A queue that is full of reads is no sign of life.
	}
	p.missed[i]++
	return p.missed[i] - 1
}

// arrived is told of a completion of replica i's connection.
func (p *pulses) arrived(i int, op fabric.Op) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missed[i] = 0
	if op == fabric.OpWrite {
		p.flying[i] = false
	}
}

// close frees the memory. The NIC must have been fenced.
func (p *pulses) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return p.mem.Close()
}

// word is the i-th of a memory that a NIC uses, too.
func word(m *fabric.Memory, i int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&m.Bytes()[i*wordBytes]))
}

// every ticks in an interval; never, if there is none.
func every(interval time.Duration) (ticks <-chan time.Time, stop func()) {
	if interval <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(interval)
	return t.C, t.Stop
}

// guard breaks the group when a replica gives no sign of life, or an operation
// takes too long.
func (g *Group) guard(ctx context.Context) {
	beats, stopBeats := every(g.spec.Heartbeat)
	defer stopBeats()
	looks, stopLooks := every(g.spec.Timeout / 8)
	defer stopLooks()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-beats:
			err = g.beat()
		case now := <-looks:
			err = g.overdue(now)
		}
		if err != nil {
			g.breakUp(err)
		}
	}
}

func (g *Group) beat() error {
	c := g.client
	for i, q := range c.watches {
		if missed := c.pulses.beat(i, q, c.offers[i].Pulse); missed >= g.spec.Misses {
			return fmt.Errorf("%s gave no sign of life for %d heartbeats of %v", c.who(i), missed, g.spec.Heartbeat)
		}
	}
	return nil
}

// overdue tells if the oldest operation has been in flight for too long.
func (g *Group) overdue(now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended == g.issued || now.Sub(g.pending[g.ended%uint64(len(g.pending))].since) < g.spec.Timeout {
		return nil
	}
	return fmt.Errorf("operation %d has not ended within %v", g.ended, g.spec.Timeout)
}

// listen ends a replica's part when the client gives no sign of life.
func (p *part) listen(ctx context.Context, end context.CancelCauseFunc) {
	beats, stop := every(p.spec.Heartbeat)
	defer stop()
	looked := time.Duration(0)
	for heard, missed := uint64(0), 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-beats:
		}
		before := looked
		looked = time.Since(p.born)
		if now := word(p.pulse, 0).Load(); now != heard {
			heard, missed = now, 0
			p.heard.Store(int64(before)) // It came since then; nobody knows when.
			continue
		}
		if missed++; missed > p.spec.Misses {
			end(fmt.Errorf("%w: the client gave no sign of life for %d heartbeats of %v", ErrBroken, p.spec.Misses, p.spec.Heartbeat))
			return
		}
	}
}

// alive tells whether the last sign of life is recent. It is seen up to an interval
// after it came, and counts as of the look before: hence two more than may be missing.
func (p *part) alive() bool {
	if p.spec.Heartbeat <= 0 {
		return true
	}
	return time.Since(p.born)-time.Duration(p.heard.Load()) <= time.Duration(p.spec.Misses+2)*p.spec.Heartbeat
}
