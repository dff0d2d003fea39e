package redis

import (
	"unsafe"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/wire/resp"
)

const aheadMax = 32

// lookahead brings near the keys of pipelined commands that do not go through
// the batch, before the first of them runs, so that their cache misses overlap.
// It is a hint: it may be wrong about a command, never about its effect.
type lookahead struct {
	end    int // input before this was looked at
	parser resp.Parser
	keys   [aheadMax]store.Key
	n, at  int // keys that there are, and those that commands came to
}

// begin forgets what was seen in other input.
func (a *lookahead) begin() { a.end, a.n, a.at = 0, 0, 0 }

// lookAhead looks at the commands from pos on.
func (l *loop) lookAhead(c *conn, pos int) {
	a, input, n := &l.ahead, c.net.window, 0
	for n < aheadMax {
		size := a.parser.Peek(input[pos:])
		if size == 0 {
			break
		}
		pos += size
		if key := firstKey(a.parser.Args); key != nil {
			l.sess.Name(&a.keys[n], c.db, key)
			n++
		}
	}
	a.end, a.n, a.at = pos, n, 0
	if n > 1 {
		l.sess.Prefetch(a.keys[:n])
	}
}

// firstKey is the key that a command begins with, as far as that is seen at a glance.
func firstKey(args [][]byte) []byte {
	cmd := lookup(args[0])
	switch {
	case cmd == nil:
	case cmd.first == 1 && len(args) > 1:
		return args[1]
	case cmd.flags&flagFunction != 0 && len(args) > functionKey && string(args[2]) != "0":
		return args[functionKey]
	}
	return nil
}

// named is what was computed of a key, the same bytes of the input, in a database; nil if that was not looked at. Commands
// ask in their order.
func (l *loop) named(key []byte, db int) *store.Key {
	a, at := &l.ahead, uintptr(unsafe.Pointer(unsafe.SliceData(key)))
	for ; a.at < a.n; a.at++ {
		k := &a.keys[a.at]
		switch seen := uintptr(unsafe.Pointer(unsafe.SliceData(k.Bytes))); {
		case seen > at:
			return nil
		case seen == at && len(k.Bytes) == len(key) && l.sess.Names(k, db):
			return k
		}
	}
	return nil
}
