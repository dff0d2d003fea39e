package store

import (
	"context"

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
	ss.leanings++
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
// there, that is what deleted them.
type Ticket struct{ batch record.BatchID }

// Seal ends the batch of all that the session wrote. The ticket tells when
// replies may go out. It stands for all earlier rounds, too.
func (ss *Session) Seal() Ticket {
	own, _ := ss.seal()
	return ss.ticket(own)
}

// SealRound is Seal for those who hold the tickets of earlier rounds: its own
// stands for what was done since the last Seal or SealRound alone, and for all
// rounds up to now if the session was resumed: a command may have begun in one of
// them. A round that wrote nothing and read what is durable waits for nobody.
func (ss *Session) SealRound() Ticket {
	own, wrote := ss.seal()
	if !wrote {
		own = 0
	}
	return ss.ticket(own)
}

// seal ends the open batch of the session's head. It returns the head's last
// batch, and whether anybody wrote to the head since the session did this last.
func (ss *Session) seal() (own record.BatchID, wrote bool) {
	h := ss.head
	h.Lock()
	own, at := h.Seal(), h.Sealed()
	h.Unlock()
	wrote = at != ss.sealed
	ss.sealed = at
	return own, wrote
}

// ticket is for a round that needs batch own, and what it has noted.
func (ss *Session) ticket(own record.BatchID) Ticket {
	t := Ticket{max(ss.need, own)}
	ss.need = 0
	if uint64(t.batch) > ss.past.Load() {
		ss.past.Store(uint64(t.batch))
	}
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
	if was := record.BatchID(ss.waitFor.Load()); !ss.wait.Load() || n < was || ss.st.log.Durable(was) {
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
func (ss *Session) WaitDurable(t Ticket) error { return ss.waitDurable(context.Background(), t) }

func (ss *Session) waitDurable(ctx context.Context, t Ticket) error {
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
		case <-ctx.Done():
			return ctx.Err()
		case <-ss.st.done:
			return ErrClosed
		}
	}
	return nil
}
