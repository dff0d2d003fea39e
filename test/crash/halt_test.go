package crash

import (
	"errors"
	"os"
	"sync/atomic"
)

// halt ends a client's run without breaking its connection.
type halt struct{ asked atomic.Bool }

func (h *halt) open()        { h.asked.Store(false) }
func (h *halt) stop()        { h.asked.Store(true) }
func (h *halt) halted() bool { return h.asked.Load() }

// errHung is a server that is alive and does not answer.
var errHung = errors.New("no answer within the harness' patience")

// hang tells a connection that waited too long from one that broke, which is
// what connections do when their server is killed.
func hang(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errHung
	}
	return nil
}
