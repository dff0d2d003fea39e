package peer

import "errors"

// Code is an error that keeps its identity on the way to the caller: errors.Is
// finds it in what a call returned as it does in what the handler returned.
type Code struct{ name, text string }

// NewCode makes a code. Names are part of the protocol: never change one.
func NewCode(name, text string) *Code { return &Code{name, text} }

// Error returns the sentence.
func (c *Code) Error() string { return c.text }

// Error is what a peer answered instead of what was asked for.
type Error struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Node    string `json:"-"` // who said so
	Method  string `json:"-"`
}

// Error returns who refused what, and why.
func (e *Error) Error() string { return "node " + e.Node + ": " + e.Method + ": " + e.Message }

// Is tells whether the peer's error was of this code.
func (e *Error) Is(target error) bool {
	c, ok := target.(*Code)
	return ok && e.Code != "" && c.name == e.Code
}

// errorOf is how an error travels.
func errorOf(err error) Error {
	var code *Code
	if errors.As(err, &code) {
		return Error{Code: code.name, Message: err.Error()}
	}
	var e *Error
	if errors.As(err, &e) {
		return Error{Code: e.Code, Message: err.Error()}
	}
	return Error{Message: err.Error()}
}

var (
	// ErrLost says that the connection ended before the answer: nobody knows whether
	// the call took effect.
	ErrLost = errors.New("peer: the connection ended before the answer")
	// ErrUnreachable says that no connection could be made: the call was not sent.
	ErrUnreachable = errors.New("peer: the node cannot be reached")
	// ErrClosed says that the pool or server was closed.
	ErrClosed = errors.New("peer: closed")
	// ErrMalformed says that bytes are not what a peer sends.
	ErrMalformed = errors.New("peer: malformed")
	// ErrUnknownMethod says that the node has no such method: another version of Ostro.
	ErrUnknownMethod = NewCode("unknown-method", "peer: the node knows no such method")
)
