package client

import (
	"time"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/wire"
)

// call is one operation on its way. At any time exactly one party has it: a session (queued or
// in flight), the list of those that wait to be tried again, or whoever completes it.
type call struct {
	op    wire.Op // with bytes of its own
	place record.Place
	w     *worker
	// finish is told the outcome, once. The result's value is the receiver's buffer.
	finish func(r *wire.Result, err error)
	// piece is set for operations on several keys.
	piece *piece
	// pinned calls fail with errMoved instead of going to another server.
	pinned bool

	began    time.Time
	sent     time.Duration // when it was sent first, by Options.now; 0: not yet
	due      time.Time     // when to try again
	attempts int
	lost     bool  // it was sent, and whether it was executed is not known
	cause    error // why the last attempt failed

	admitted bool   // it has had its place among those in flight
	batch    *batch // it is under way in
	index    int    // in batch.calls
}

func (c *call) bytes() int { return wire.OpBytes(&c.op) }

// once tells whether the operation has an identity.
func (c *call) once() bool { return c.op.Flags&wire.FlagOnce != 0 }

// end completes the call.
func (c *call) end(r *wire.Result, err error) {
	if c.once() {
		c.w.acks.done(c.op.Sequence)
	}
	c.finish(r, err)
}
