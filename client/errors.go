package client

import (
	"errors"
	"fmt"

	"github.com/ostrodb/ostro/wire"
)

var (
	// ErrNotFound says that there is no such key.
	ErrNotFound = errors.New("no such key")
	// ErrConflict says that the operation's condition does not hold. The Result tells the
	// version that is there, and of a Swap the value if it is short.
	ErrConflict = errors.New("the condition does not hold")
	// ErrUnknownOutcome says that a write may have happened or not: its answer was lost, and it
	// is too late, or not possible, to ask again.
	ErrUnknownOutcome = errors.New("the write may have happened or not: its answer was lost")
	// ErrUnavailable says that no server could execute the operation in time. It was not executed.
	ErrUnavailable = errors.New("no server could execute the operation in time")
	// ErrBusy says that too many operations are in flight, where Options.FailWhenFull asks to hear so.
	ErrBusy = errors.New("too many operations are in flight")
	// ErrClosed says that the client was closed. A write that was sent before may have happened.
	ErrClosed = errors.New("the client is closed")
	// ErrNoTable says that no table can have such a number.
	ErrNoTable = errors.New("there is no such table")
	// ErrTooLarge says that something is over its limit.
	ErrTooLarge = errors.New("too large")
)

// ServerError is an operation that a server refused, in its words.
type ServerError struct {
	Status wire.Status
	Text   string
}

func (e *ServerError) Error() string { return e.Text }

// errorOf makes an error of a status that is one.
func errorOf(r *wire.Result) error {
	switch r.Status {
	case wire.OK:
		return nil
	case wire.NotFound:
		return ErrNotFound
	case wire.Conflict:
		return ErrConflict
	case wire.TooLarge:
		return fmt.Errorf("%w: %s", ErrTooLarge, r.Value)
	}
	return &ServerError{r.Status, string(r.Value)}
}
