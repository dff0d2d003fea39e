package store

import "github.com/ostrodb/ostro/engine/hlog"

// attendant is a session whose worker looks for itself whether what it wrote was copied.
type attendant struct {
	to      hlog.Attended // nil: nobody lets it look
	waiting bool          // it left so
	until   Ticket
	over    func() bool
}

func (a *attendant) begin(ss *Session) {
	a.to = ss.log.Attended()
	a.over = func() bool { return ss.log.Durable(a.until.batch) }
}

// Attends tells whether there is anything to look at.
func (ss *Session) Attends() bool { return ss.attendant.to != nil }

// Attend says that the worker is awake, and looks again and again from now on. A worker that never says so is
// told of everything by Notify.
func (ss *Session) Attend() {
	if a := &ss.attendant; a.to != nil {
		a.to.Attend(a.waiting)
		a.waiting = false
	}
}

// Look takes note of copies that were made. Notify's function may be called by it.
func (ss *Session) Look() {
	if a := &ss.attendant; a.to != nil {
		a.to.Look()
	}
}

// Linger looks whether a ticket becomes durable within the next microseconds.
func (ss *Session) Linger(t Ticket) bool {
	a := &ss.attendant
	if a.to == nil {
		return false
	}
	a.until = t
	a.to.Linger(a.over)
	return a.over()
}

// Leave says that the worker is going to sleep, and whether it waits for a ticket.
func (ss *Session) Leave(waiting bool) {
	if a := &ss.attendant; a.to != nil {
		a.waiting = waiting
		a.to.Leave(waiting)
	}
}
