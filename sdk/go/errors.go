//go:build wasip1

package ostro

import "errors"

// What calls of the store fail with.
var (
	ErrElsewhere = errors.New("another node has this key: use one hash tag for all keys of a call")
	ErrTooLarge  = errors.New("a key or value is too large")
	ErrReadOnly  = errors.New("invoked for reading only")
	ErrNoTable   = errors.New("no such table")
	ErrFull      = errors.New("the store is full")
	ErrArgument  = errors.New("a key or an argument is missing or wrong")
)

// Error is an error of your own, with a code outside of 0 and 240 to 255 that
// callers can tell it by.
type Error struct {
	Code    int32
	Message string
}

func (e *Error) Error() string { return e.Message }

// argument is an ErrArgument that says which.
type argument string

func (a argument) Error() string { return string(a) }
func (a argument) Unwrap() error { return ErrArgument }

// Codes of errors that are not an *Error.
const (
	codeArgument = 241
	codeStore    = 242
	codePanic    = 243
	codeOther    = 244
)

func codeOf(err error) int32 {
	var own *Error
	switch {
	case errors.As(err, &own):
		return own.Code
	case errors.Is(err, ErrArgument):
		return codeArgument
	}
	for _, store := range statuses {
		if errors.Is(err, store) {
			return codeStore
		}
	}
	return codeOther
}

const absent = -1

// statuses are the store's answers from -2 downwards.
var statuses = []error{ErrElsewhere, ErrTooLarge, ErrReadOnly, ErrNoTable, ErrFull}

func check(status int32) error {
	switch i := -2 - int(status); {
	case status >= 0:
		return nil
	case i >= 0 && i < len(statuses):
		return statuses[i]
	}
	return errors.New("the store refused")
}
