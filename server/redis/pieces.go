package redis

import (
	"bytes"

	"github.com/ostrodb/ostro/tenant"
)

// A tenant's command on more keys than one step may have goes on in pieces, if its parts mean something by themselves:
// MGET, EXISTS, TOUCH, DEL and UNLINK. Between two pieces others have their turn, on the same keys, too: each piece is of
// one moment, the command is not.

// pieceKeys is how many keys a piece has.
const pieceKeys = 1024

// piecesProgress is how far a command in pieces came.
type piecesProgress struct {
	done    int // keys
	replies [][]byte
	bytes   int // of them
}

// inPieces is a handler that divides what is too much for one step. Inside MULTI all is one step, and bounded by that.
func inPieces(run handler, join func(replies [][]byte) []byte) handler {
	return func(c *call) verdict {
		if len(c.args)-1 <= tenant.MaxKeys || c.conn.account() == nil || c.conn.multi.active {
			return run(c)
		}
		return c.nextPiece(run, join)
	}
}

// nextPiece runs the handler on the keys that come next, and answers when they were the last.
func (c *call) nextPiece(run handler, join func(replies [][]byte) []byte) verdict {
	p, args, mark := &c.conn.resume.pieces, c.args, c.out.Len()
	end := min(p.done+1+pieceKeys, len(args))
	c.args = args[p.done:end] // What stands before the keys is the name, or the key before them: no handler asks.
	v := run(c)
	c.args = args
	if v != done {
		return v
	}
	reply := bytes.Clone(c.out.Bytes()[mark:])
	c.out.Truncate(mark)
	p.replies, p.bytes, p.done = append(p.replies, reply), p.bytes+len(reply), end-1
	switch {
	case reply[0] == '-':
		c.out.Raw(reply)
	case c.overReply(p.bytes):
		c.out.Error(errReplyValues)
	case end < len(args):
		return c.resumeNext()
	default:
		c.out.Raw(join(p.replies))
	}
	*p = piecesProgress{}
	return done
}
