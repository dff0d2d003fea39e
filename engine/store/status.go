package store

import (
	"errors"

	"github.com/ostrodb/ostro/engine/hlog"
)

// Status is the outcome of an operation. Expected outcomes are no errors;
// Session.Err tells more about the last three.
type Status uint8

const (
	OK       Status = iota
	NotFound        // No such key, or it has expired.
	Cold            // A record, or room for one, is not in memory: see Session.TakeFetch. Nothing was changed.
	Conflict        // The key is no longer as expected. Nothing was changed.
	Refused         // The memory limit is reached, or memory or disk of the machine are full. Nothing was changed.
	TooLarge        // A key, value or transaction is over its limit.
	Failed          // A disk fails, the log is closed or worse. Something may have been changed.
)

var statusNames = []string{"OK", "NotFound", "Cold", "Conflict", "Refused", "TooLarge", "Failed"}

func (s Status) String() string { return statusNames[s] }

var (
	// ErrMemoryFull says that the memory limit refuses a write.
	ErrMemoryFull = errors.New("the memory limit is reached: raise it, delete keys, or choose another memory policy")
	// ErrIndexFull says that the machine refuses a write.
	ErrIndexFull = errors.New("the machine has no memory for the index to grow: free some, or lower the memory limit")
	// ErrTooLarge says that something is over its limit.
	ErrTooLarge = errors.New("too large")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// fail notes why an operation did not succeed. What can be waited for is Cold.
func (ss *Session) fail(err error) Status {
	ss.err = err
	switch {
	case errors.Is(err, hlog.ErrNoRoom):
		ss.noRoom = true
		return Cold
	case errors.Is(err, ErrMemoryFull), errors.Is(err, ErrIndexFull), errors.Is(err, hlog.ErrNoSegment):
		return Refused
	case errors.Is(err, ErrTooLarge):
		return TooLarge
	}
	return Failed
}

// OutOfMemory tells whether a Refused was for want of memory, by its error.
func OutOfMemory(err error) bool {
	return errors.Is(err, ErrMemoryFull) || errors.Is(err, ErrIndexFull)
}

// Err tells more about the last Refused, TooLarge or Failed.
func (ss *Session) Err() error { return ss.err }
