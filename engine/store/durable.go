package store

import (
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// needs is what must be durable before a round's replies may go out: the
// session's own batch, and batches of others that it read from before they
// were durable.
type needs struct {
	n   int
	pos [4]position
	all bool // too many to list: wait for every head
}

// position is a place in the stream of one head.
type position struct {
	head *hlog.Head
	pos  uint64
}

// note adds the batch of the entry at a.
func (ns *needs) note(l *hlog.Log, a record.Address) {
	h, pos := l.Position(a)
	if h != nil && h.Durable() < pos {
		ns.add(h, pos)
	}
}

func (ns *needs) add(h *hlog.Head, pos uint64) {
	for i := range ns.n {
		if ns.pos[i].head == h {
			ns.pos[i].pos = max(ns.pos[i].pos, pos)
			return
		}
	}
	if ns.n == len(ns.pos) {
		ns.all = true
		return
	}
	ns.pos[ns.n] = position{h, pos}
	ns.n++
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
	for i := range t.n {
		if t.pos[i].head.Durable() < t.pos[i].pos {
			ss.await()
			return t.pos[i].head.Durable() >= t.pos[i].pos && ss.Durable(t)
		}
	}
	if t.all && !ss.st.log.AllDurable() {
		ss.await()
		return false
	}
	return true
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
	ss.st.log.OnDurable(func() {
		if ss.wait.Swap(false) {
			ss.st.log.Arrived()
			f()
		}
	})
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
