package migrate

import (
	"context"
	"errors"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
)

// partBytes is about how much goes in one part of an answer.
const partBytes = 256 << 10

// sendCompletions sends the results of operations: without them a target could not tell an operation that is
// sent again from a new one.
func sendCompletions(ctx context.Context, c *peer.Call, st *store.Store, ranges view.Ranges) error {
	p := newParts(func(part []byte) error { return c.Send(yielded{}, part) })
	err := st.CompletionsWith(ctx, Ranges(ranges), store.CompletionOptions{Emit: p.add, Advanced: p.advanced})
	return errors.Join(err, p.flush())
}

// signEvery is how often a source says something while it looks for results, if only that it does: a target that hears nothing
// begins from the beginning, and clients would wait twice.
const signEvery = silent / 10

// parts gathers entries inside of guards and sends them together outside, where nobody waits for a target that does not read.
type parts struct {
	send func(part []byte) error
	part []byte
	sent time.Time
	err  error
}

func newParts(send func(part []byte) error) *parts { return &parts{send: send, sent: time.Now()} }

// add adds an entry. It sends nothing.
func (p *parts) add(entry []byte) { p.part = append(p.part, entry...) }

// advanced is called when there was some progress, outside of guards. What there is goes if it is enough for a part, or if nothing was
// sent for long, and be it an empty part. Without progress nothing is said.
func (p *parts) advanced() error {
	if len(p.part) >= partBytes || time.Since(p.sent) >= signEvery {
		p.say()
	}
	return p.err
}

// flush sends the rest.
func (p *parts) flush() error {
	if len(p.part) > 0 {
		p.say()
	}
	return p.err
}

// say sends what there is. After an error nothing goes any more.
func (p *parts) say() {
	if p.err == nil {
		p.err = p.send(p.part)
	}
	p.part, p.sent = p.part[:0], time.Now()
}
