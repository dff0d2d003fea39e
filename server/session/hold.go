package session

import "github.com/ostrodb/ostro/engine/store"

// held is results that wait until what they tell of is durable.
type held struct {
	ticket store.Ticket
	c      *conn
	out    *buffer
}

func (w *worker) hold(t store.Ticket, c *conn, out *buffer) {
	if len(out.b) == 0 {
		out.free()
		return
	}
	w.srv.count.held.Add(1)
	w.held = append(w.held, held{t, c, out})
	if w.box.moved.Load() {
		w.nudge()
	}
	if len(w.held) == 1 {
		w.nudge() // Somebody must look whether the lease outlives the wait.
	}
}

// releaseHeld sends all that is durable now. What can never be known to be, or may not be
// told any more, ends its connection instead.
func (w *worker) releaseHeld() {
	n := 0
	for n < len(w.held) && w.sess.Durable(w.held[n].ticket) {
		h := w.held[n]
		if w.srv.gate.Alive() {
			h.c.post(h.out)
		} else {
			h.c.abandon(h.out)
		}
		n++
	}
	if n < len(w.held) && (w.srv.st.Health() != nil || !w.srv.gate.Alive()) {
		for _, h := range w.held[n:] {
			h.c.abandon(h.out)
		}
		n = len(w.held)
	}
	if n > 0 {
		left := copy(w.held, w.held[n:])
		clear(w.held[left:])
		w.held = w.held[:left]
	}
}
