package store

import (
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// needs is what must be durable before a round's replies may go out: the
// session's own batch, and batches of others that it read from before they
// were durable.
type needs struct {
	n    int
	pos  [4]position
	more []position // beyond those, of further heads
}

// position is a place in the stream of one head.
type position struct {
	head *hlog.Head
	pos  uint64
}

// note adds the batch of the entry at a. If another session is still writing
// to that batch, it is sealed here: what this session writes next may lean on
// it, and a crash must not keep the one without the other.
func (ss *Session) note(a record.Address) {
	h, pos := ss.st.log.Position(a)
	if h == nil {
		return
	}
	if h != ss.head && h.Sealed() < pos {
		h.Lock()
		h.Seal()
		h.Unlock()
	}
	if h.Durable() < pos {
		ss.need.add(h, pos)
	}
}

func (ns *needs) add(h *hlog.Head, pos uint64) {
	switch {
	case lift(ns.pos[:ns.n], h, pos) || lift(ns.more, h, pos):
	case ns.n == len(ns.pos):
		ns.more = append(ns.more, position{h, pos})
	default:
		ns.pos[ns.n] = position{h, pos}
		ns.n++
	}
}

// lift raises the position of a head that is listed.
func lift(part []position, h *hlog.Head, pos uint64) bool {
	for i := range part {
		if part[i].head == h {
			part[i].pos = max(part[i].pos, pos)
			return true
		}
	}
	return false
}

// met tells whether all heads have come far enough.
func (ns *needs) met() bool {
	return met(ns.pos[:ns.n]) && met(ns.more)
}

func met(part []position) bool {
	for i := range part {
		if part[i].head.Durable() < part[i].pos {
			return false
		}
	}
	return true
}

// Ticket stands for a round of operations; see Durable.
type Ticket struct{ needs }

// Seal ends the batch of all that the session wrote. The ticket tells when
// replies may go out.
func (ss *Session) Seal() Ticket {
	ss.head.Lock()
	pos := ss.head.Seal()
	ss.head.Unlock()
	if pos > ss.head.Durable() {
		ss.need.add(ss.head, pos)
	}
	t := Ticket{ss.need}
	ss.need = needs{}
	return t
}

// Durable tells whether what the ticket stands for is as durable as the store
// promises. While it is not, somebody must be waiting: see Notify.
func (ss *Session) Durable(t Ticket) bool {
	if t.met() {
		return true
	}
	ss.await()
	return t.met() // It may have come meanwhile, too early to be told.
}

// await asks for a call of the session's Notify function.
func (ss *Session) await() {
	if !ss.wait.Swap(true) {
		ss.st.log.Await()
		return
	}
	ss.st.log.AskSync()
}

// Notify sets what is called, from another goroutine, when durability has
// moved on after Durable said no. One call may serve several rounds.
func (ss *Session) Notify(f func()) {
	forget := ss.st.log.OnDurable(func() {
		if ss.arrived() {
			f()
		}
	})
	ss.onClose = append(ss.onClose, forget)
}

// arrived ends an await; false if there was none.
func (ss *Session) arrived() bool {
	waited := ss.wait.Swap(false)
	if waited {
		ss.st.log.Arrived()
	}
	return waited
}

// WaitDurable waits until the ticket is durable.
func (ss *Session) WaitDurable(t Ticket) error {
	ss.waitOnce.Do(func() {
		ss.moved = make(chan struct{}, 1)
		ss.Notify(func() {
			select {
			case ss.moved <- struct{}{}:
			default:
			}
		})
	})
	for !ss.Durable(t) {
		if err := ss.st.log.SyncError(); err != nil {
			return err
		}
		select {
		case <-ss.moved:
		case <-ss.st.done:
			return ErrClosed
		}
	}
	return nil
}
