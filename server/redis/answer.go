package redis

import (
	"errors"
	"strconv"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// Error replies that several commands share, in Redis' words.
const (
	errSyntax      = "ERR syntax error"
	errWrongType   = "WRONGTYPE Operation against a key holding the wrong kind of value"
	errNotInteger  = "ERR value is not an integer or out of range"
	errNotFloat    = "ERR value is not a valid float"
	errNoSuchKey   = "ERR no such key"
	errSameObject  = "ERR source and destination objects are the same"
	errDBRange     = "ERR DB index is out of range"
	errTooLong     = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	errKeyTooLong  = "ERR too large: a key has at most 65535 bytes"
	errOutOfMemory = "OOM command not allowed when used memory > 'maxmemory'."
)

// key is the key at an argument's position in the selected database.
func (c *call) key(i int) store.Key { return c.ss.Key(c.db, c.args[i]) }

// fail ends the command with an error reply.
func (c *call) fail(text string) verdict {
	c.out.Error(text)
	return done
}

// ok ends the command with +OK.
func (c *call) ok() verdict {
	c.out.OK()
	return done
}

// int ends the command with a number.
func (c *call) int(n int64) verdict {
	c.out.Int(n)
	return done
}

// truth ends the command with 1 or 0.
func (c *call) truth(b bool) verdict {
	if b {
		return c.int(1)
	}
	return c.int(0)
}

// refusal is the answer to a write that was refused for err. Clients look for
// OOM; people want to know whether it was our limit, the machine's memory or its disk.
func (s *Server) refusal(err error) string {
	switch {
	case errors.Is(err, store.ErrIndexFull):
		return "OOM " + err.Error()
	case store.OutOfMemory(err):
		return errOutOfMemory
	}
	return s.storeError(err)
}

// storeError is the answer to a command that failed with the store. A node of a cluster whose log is over has nothing to
// say about any key: clients are told to ask again, and find who has taken it over.
func (s *Server) storeError(err error) string {
	if store.Unsettled(err) {
		return errRecovering
	}
	if s.cfg.Cluster != nil && (s.store.Health() != nil || errors.Is(err, store.ErrClosed)) {
		return "CLUSTERDOWN " + err.Error()
	}
	return "ERR " + err.Error()
}

// stopped turns a status that ends a command into its verdict and reply.
func (c *call) stopped(st store.Status) verdict {
	switch st {
	case store.Cold:
		return cold
	case store.Refused:
		return c.fail(c.srv.refusal(c.ss.Err()))
	}
	if err := c.ss.Err(); err != nil {
		return c.fail(c.srv.storeError(err))
	}
	return c.fail("ERR the store did not take the command (" + st.String() + "): try again")
}

// read gets the string at an argument's position. Where ok is false the command
// ends with verdict v: a key of another kind was answered with an error. An
// absent key is an empty view with found false.
func (c *call) read(i int) (view store.View, found bool, v verdict, ok bool) {
	k := c.key(i)
	view, st := c.ss.Get(&k)
	switch {
	case st == store.NotFound:
		return view, false, done, true
	case st != store.OK:
		return view, false, c.stopped(st), false
	case !isString(view):
		return view, true, c.fail(errWrongType), false
	}
	return view, true, done, true
}

func isString(v store.View) bool { return v.Kind == record.KindString }

// intArg reads an argument as an integer, or answers with an error.
func (c *call) intArg(i int) (int64, bool) {
	n, ok := parseInt(c.args[i])
	if !ok {
		c.out.Error(errNotInteger)
	}
	return n, ok
}

// int32Arg is intArg for what Redis keeps in a C int.
func (c *call) int32Arg(i int) (int, bool) {
	n, ok := c.intArg(i)
	if ok && n != int64(int32(n)) {
		c.out.Error("ERR value is out of range, value must between -2147483648 and 2147483647")
		return 0, false
	}
	return int(n), ok
}

// dbArg reads an argument as the number of a database, or answers with an error.
func (c *call) dbArg(i int) (int, bool) {
	n, ok := c.int32Arg(i)
	if !ok {
		return 0, false
	}
	db, ok := c.conn.database(n)
	if !ok {
		c.out.Error(errDBRange)
	}
	return db, ok
}

// is reports whether an argument is the given lower-case word, in any case.
func (c *call) is(i int, word string) bool { return equalFold(c.args[i], word) }

// cString is the part of an argument before its first zero byte, which is all
// that Redis shows of it in an error.
func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// formatInt formats n into the call's scratch.
func (c *call) formatInt(n int64) []byte {
	c.scratch.value = strconv.AppendInt(c.scratch.value[:0], n, 10)
	return c.scratch.value
}
