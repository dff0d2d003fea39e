package replica

import (
	"testing"

	"github.com/ostrodb/ostro/internal/await"
)

// Workers that are awake say that they look, and these do not: what one of them waits for in its sleep, and what nobody
// waits for, is found all the same.
func TestWorkersThatSayTheyLookKeepNobodyFromTheirCompletions(t *testing.T) {
	for _, waiting := range []bool{true, false} {
		c := newCluster(t, 3, 2, testSegment)
		w := newWriter(t, testSegment)
		p := c.primary(w, c.options(2))
		h := w.head()
		p.Attend(false) // and never looks
		p.Attend(false)
		for range 50 {
			n := h.write(2, 100)
			p.Leave(waiting)
			w.await(n)
			p.Attend(waiting)
		}
		for range 2 {
			p.Leave(false)
		}
		w.await(h.write(1, 10))
	}
}

func TestAWorkerThatLooksFindsItsCompletionsItself(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	p := c.primary(w, c.options(2))
	h := w.head()
	p.Attend(false)
	defer p.Leave(false)
	await.True(t, "the poller leaves it to the worker", func() bool {
		w.await(h.write(1, 10))
		return p.attendance.parked.Load()
	})
	p.attendance.taking.Lock() // Nobody else can.
	n := h.write(3, 1000)
	await.True(t, "the batch is copied", func() bool {
		p.take()
		return p.Watermark() >= n
	})
	p.attendance.taking.Unlock()
	over := false
	p.Linger(func() bool { over = p.Watermark() >= n; return over })
	if !over {
		t.Error("who lingers is not asked whether it is enough")
	}
}
