package redis

import (
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
}

// lookAhead looks at the commands from pos on.
func (l *loop) lookAhead(c *conn, pos int) {
	a, input, n := &l.ahead, c.net.window, 0
	for n < aheadMax {
		size := a.parser.Peek(input[pos:])
		if size == 0 {
			break
		}
		pos += size
		args := a.parser.Args
		if cmd := lookup(args[0]); cmd != nil && cmd.first == 1 && len(args) > 1 {
			l.sess.Name(&a.keys[n], c.db, args[1])
			n++
		}
	}
	a.end = pos
	if n > 1 {
		l.sess.Prefetch(a.keys[:n])
	}
}
