package session

import (
	"sync"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/wire"
)

const clientStripes = 256

// clients keeps attempts of one operation apart. Batches of one client are executed one
// after the other, whatever connections they come by; and an operation that waits is
// known, so that the next attempt waits with it.
type clients struct{ stripes [clientStripes]stripe }

type stripe struct {
	mu     sync.Mutex
	parked map[store.OpID]*park
	_      [40]byte // No two on one cache line.
}

func (c *clients) of(client uint64) *stripe { return &c.stripes[client*0x9e3779b97f4a7c15>>56] }

// lock locks the stripe of a client.
func (c *clients) lock(client uint64) *stripe {
	s := c.of(client)
	s.mu.Lock()
	return s
}

func (s *stripe) add(p *park) {
	if s.parked == nil {
		s.parked = map[store.OpID]*park{}
	}
	s.parked[p.id()] = p
}

func (s *stripe) drop(p *park) { delete(s.parked, p.id()) }

func (p *park) id() store.OpID { return store.OpID{Client: p.batch.Client, Seq: p.op.Sequence} }

// joined tells whether the operation waits already, by an earlier attempt; then it is
// answered with that.
func (w *worker) joined(op *wire.Op) bool {
	s := w.srv.clients.of(w.on.batch.Client)
	p := s.parked[w.id(op)]
	if p == nil || p == w.on.park {
		return false
	}
	p.also = append(p.also, waiter{w.on.c, op.Tag})
	w.on.c.wait(1)
	return true
}

// id names the operation for all of its attempts.
func (w *worker) id(op *wire.Op) store.OpID {
	return store.OpID{Client: w.on.batch.Client, Seq: op.Sequence}
}
