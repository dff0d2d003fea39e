package redis

import (
	"bytes"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/background"
	"github.com/ostrodb/ostro/tenant"
)

// lcsOptions are what LCS was asked for.
type lcsOptions struct {
	length, indexes, withLength bool
	shortest                    int64 // runs below this are not shown
}

// lcsInline is how large a table is made between other commands. A larger one is in the background, one after the other.
const lcsInline = 1 << 16

func lcs(c *call) verdict {
	if c.conn.resume.errand != nil {
		o, _ := c.lcsOptions() // They were read before.
		return c.lcsLater(nil, nil, o)
	}
	var values [2][]byte
	n, wrongType := 0, false
	keys := append(c.scratch.keys[:0], c.key(1), c.key(2))
	st := c.readEach(keys, func(v store.View, found bool) {
		wrongType = wrongType || found && !isString(v)
		values[n] = v.Value
		n++
	})
	if st != store.OK {
		return c.stopped(st)
	}
	if wrongType {
		return c.fail("ERR The specified keys must contain string values")
	}
	o, ok := c.lcsOptions()
	if !ok {
		return done
	}
	a, b := values[0], values[1]
	small, isTenant := lcsCells(a, b) <= lcsInline, c.conn.account() != nil
	switch {
	case lcsTableBytes(a, b) > c.srv.settings.maxBulkBytes.Load():
		return c.fail("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
	case isTenant && lcsTableBytes(a, b) > tenant.MaxReplyBytes:
		return c.fail(errLCSBytes)
	case !small && !c.conn.multi.active:
		if refusal := c.conn.mayWait(); refusal != "" {
			return c.fail(refusal)
		}
		c.owe(int(lcsCells(a, b) / lcsInline))
		return c.lcsLater(bytes.Clone(a), bytes.Clone(b), o)
	case !small && isTenant:
		return c.fail(errLCSMulti)
	}
	c.answerLCS(solveLCS(a, b, o.length), o)
	return done
}

// lcsLater finds it in the background, one at a time and behind those who serve: it takes memory and time.
func (c *call) lcsLater(a, b []byte, o lcsOptions) verdict {
	srv := c.srv
	value, over, _ := c.awaitValue(func(finished func(any, error)) {
		go func() {
			srv.slow.Lock()
			defer srv.slow.Unlock()
			background.Modestly(func() { finished(solveLCS(a, b, o.length), nil) })
		}()
	})
	if !over {
		return later
	}
	c.answerLCS(value.(lcsResult), o)
	return done
}

// lcsOptions reads LCS' options, or answers with an error.
func (c *call) lcsOptions() (o lcsOptions, ok bool) {
	for i := 3; i < len(c.args); i++ {
		switch {
		case c.is(i, "idx"):
			o.indexes = true
		case c.is(i, "len"):
			o.length = true
		case c.is(i, "withmatchlen"):
			o.withLength = true
		case c.is(i, "minmatchlen") && i+1 < len(c.args):
			i++
			if o.shortest, ok = c.intArg(i); !ok {
				return o, false
			}
		default:
			c.out.Error(errSyntax)
			return o, false
		}
	}
	if o.length && o.indexes {
		c.out.Error("ERR If you want both the length and indexes, please just use IDX.")
		return o, false
	}
	return o, true
}

func (c *call) answerLCS(found lcsResult, o lcsOptions) {
	if o.length {
		c.out.Int(int64(found.length))
		return
	}
	if !o.indexes {
		c.out.Bulk(found.common)
		return
	}
	shown := found.runs[:0]
	for _, r := range found.runs {
		if int64(r.length) >= o.shortest {
			shown = append(shown, r)
		}
	}
	c.out.Map(2)
	c.out.BulkString("matches")
	c.out.Array(len(shown))
	for _, r := range shown {
		c.answerLCSMatch(r, o.withLength)
	}
	c.out.BulkString("len")
	c.out.Int(int64(found.length))
}

func (c *call) answerLCSMatch(m lcsMatch, withLength bool) {
	if withLength {
		c.out.Array(3)
	} else {
		c.out.Array(2)
	}
	for _, start := range [2]int{m.a, m.b} {
		c.out.Array(2)
		c.out.Int(int64(start))
		c.out.Int(int64(start + m.length - 1))
	}
	if withLength {
		c.out.Int(int64(m.length))
	}
}
