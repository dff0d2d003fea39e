package crash

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/ostrodb/ostro/test/harness"
)

// client is one connection's worth of load, and knows what must come of it.
type client interface {
	book() *ledger
	// run loads the server until the connection breaks, which is no error, or
	// an answer is wrong.
	run(c *harness.Conn, logged bool) error
	// stop lets run return nil after its next answer.
	stop()
}

// writer writes to two databases of its own.
type writer struct {
	ledger
	author
	halt
	base    *image // after the first `based` operations
	based   int64
	queue   []op // those after base that were sent
	pending []saving
	books   func() []*ledger
}

func newWriter(n int, rng *rand.Rand, m mix) *writer {
	w := &writer{base: newImage()}
	w.author = author{rng: rng, mix: m, ahead: newImage(), dbs: [2]string{strconv.Itoa(2 * n), strconv.Itoa(2*n + 1)}}
	return w
}

func (w *writer) run(c *harness.Conn, logged bool) error {
	w.open()
	if _, err := c.Do("SELECT", w.dbs[0]); err != nil {
		return nil
	}
	for !w.halted() {
		batch := 1
		if w.rng.IntN(2) == 0 {
			batch = 1 + w.rng.IntN(64)
		}
		broken, err := w.round(c, batch)
		if broken || err != nil {
			return err
		}
		w.rebase(w.least(logged))
	}
	return nil
}

// round sends some operations and looks at the answers. It tells whether the
// connection broke.
func (w *writer) round(c *harness.Conn, batch int) (broken bool, err error) {
	first := len(w.queue)
	for range batch {
		if !w.send(c) {
			return true, nil
		}
	}
	if c.Flush() != nil {
		return true, nil
	}
	for _, o := range w.queue[first:] {
		if broken, err := w.receive(c, o); broken || err != nil {
			return broken, err
		}
		w.acknowledged.Add(1)
	}
	return false, nil
}

func (w *writer) send(c *harness.Conn) bool {
	o := w.next()
	w.queue = append(w.queue, o)
	w.sent++
	if o.save {
		w.pending = append(w.pending, beginSave(w.books()))
	}
	for _, command := range o.commands {
		if c.Send(command...) != nil {
			return false
		}
	}
	return true
}

// receive reads the answers to one operation.
func (w *writer) receive(c *harness.Conn, o op) (broken bool, err error) {
	for i, want := range o.want {
		v, err := c.Receive()
		if err != nil {
			return true, hang(err)
		}
		got := harness.Text(v)
		if o.save {
			w.saved(got)
		}
		if got != want && want != anyReply {
			return false, fmt.Errorf("database %s: %s was answered by %s, want %s", w.dbs[0], brief(strings.Join(o.commands[i], " ")), brief(got), brief(want))
		}
		if want == anyReply && strings.HasPrefix(got, "-") && !o.save {
			return false, fmt.Errorf("database %s: %s was answered by %s", w.dbs[0], brief(strings.Join(o.commands[i], " ")), got)
		}
	}
	return false, nil
}

// saved takes note of the answer to the oldest SAVE.
func (w *writer) saved(reply string) {
	s := w.pending[0]
	w.pending = w.pending[1:]
	if reply == "OK" {
		s.done()
	}
}

// rebase folds operations that are surely kept into the base.
func (w *writer) rebase(to int64) {
	n := to - w.based
	for _, o := range w.queue[:n] {
		w.base.apply(o.changes)
	}
	w.queue = append(w.queue[:0], w.queue[n:]...)
	w.based = to
}

func brief(s string) string {
	if len(s) > 120 {
		return fmt.Sprintf("%q... (%d bytes)", s[:100], len(s))
	}
	return fmt.Sprintf("%q", s)
}
