package store

import (
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// note makes the round need the batch of the entry at a. If another session is
// still writing to that batch, it is sealed here: what this session writes next
// may build on it, so it must come later in the order of batches, for a crash
// must not keep the one without the other.
func (ss *Session) note(a record.Address) {
	h, pos := ss.st.log.Position(a)
	if h != nil {
		ss.lean(h, pos)
	}
}

// lean makes the round need what stands before a position of a head.
func (ss *Session) lean(h *hlog.Head, pos uint64) {
	ss.sealFor(h, pos)
	ss.need = max(ss.need, h.Batch())
}

// sealFor sees that what stands before a position of another head is sealed. On
// the session's own it is sealed with what follows, or before.
func (ss *Session) sealFor(h *hlog.Head, pos uint64) {
	if h != ss.head && h.Sealed() < pos {
		h.Lock()
		h.Seal()
		h.Unlock()
	}
}

// Ticket stands for a round of operations; see Durable. It is the last batch
// that must be durable before the round's replies may go out: the session's own,
// or one of others that it read from before it was durable. Of keys that were not
// there, that is what deleted them. A round that wrote nothing, and read what is
// durable, needs none: it does not wait for the rounds before it.
type Ticket struct{ batch record.BatchID }

// Seal ends the batch of all that the session wrote. The ticket tells when
// replies to what was done since the last Seal may go out.
func (ss *Session) Seal() Ticket {
	ss.head.Lock()
	own, at := ss.head.Seal(), ss.head.Sealed()
	ss.head.Unlock()
	t := Ticket{ss.need}
	if at != ss.sealed { // Else nobody wrote to the head since.
		t.batch, ss.sealed = max(ss.need, own), at
	}
	ss.need = 0
	return t
}

// Durable tells whether what the ticket stands for is as durable as the store
// promises. While it is not, somebody must be waiting: see Notify.
func (ss *Session) Durable(t Ticket) bool {
	if ss.st.log.Durable(t.batch) {
		return true
	}
	ss.await(t.batch)
	return ss.st.log.Durable(t.batch) // It may have come meanwhile, too early to be told.
}

// await asks for a call of the session's Notify function when batch n is durable.
// If it waits already, the lower one counts.
func (ss *Session) await(n record.BatchID) {
	if waits := ss.wait.Load(); !waits || uint64(n) < ss.waitFor.Load() {
		ss.waitFor.Store(uint64(n))
	}
	if !ss.wait.Swap(true) {
		ss.st.log.Await()
		return
	}
	ss.st.log.Press()
}

// awaited tells whether what the session waits for has come, or never will.
func (ss *Session) awaited() bool {
	switch {
	case !ss.wait.Load():
		return false
	case ss.st.log.Durable(record.BatchID(ss.waitFor.Load())), ss.st.log.Err() != nil:
		return true
	}
	ss.st.log.Press()
	return false
}

// Notify sets what is called, from another goroutine, when durability has
// moved on after Durable said no. One call may serve several rounds.
func (ss *Session) Notify(f func()) {
	forget := ss.st.log.OnDurable(func() {
		if ss.awaited() && ss.arrived() {
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
		if err := ss.st.log.Err(); err != nil {
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
