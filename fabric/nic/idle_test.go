package nic

import (
	"testing"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/ring"
)

// An engine whose lists are not empty looks at them in every round and never sleeps.
func TestNothingThatEndedKeepsAnEngineAwake(t *testing.T) {
	e := startEngine(t)
	p := newProgram(t, e, "p")
	q, mem := p.loop()
	pair := ring.NewPair(mem, depth, depth)
	w := fabric.Send(fabric.Piece{Key: p.region.Local, Bytes: 8})
	pair.Send.Put(0, &w)
	pair.Send.Publish(1)
	p.ring(q.Bell)
	lists := func() (n int) {
		_ = e.do(func() { n = len(e.timed) + len(e.unowned) + len(e.parked) + len(e.draining) })
		return n
	}
	for lists() == 0 { // The SEND waits for a RECV, with a deadline.
	}
	_ = e.do(func() { e.fail(e.qp(q.Number), fabric.PeerLost) })
	if n := lists(); n != 0 {
		t.Fatalf("%d queue pairs are watched after they failed", n)
	}
	r, mem := p.loop()
	pair = ring.NewPair(mem, depth, depth)
	w = fabric.Nop().Defer()
	pair.Send.Put(0, &w)
	pair.Send.Publish(1)
	p.ring(r.Bell)
	for lists() == 0 { // The NOP waits to be handed over.
	}
	p.call(Request{Verb: CloseQP, Domain: p.domain, QP: r.Number})
	if n := lists(); n != 0 {
		t.Fatalf("%d queue pairs are watched after they were closed", n)
	}
}
