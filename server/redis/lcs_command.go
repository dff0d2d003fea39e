package redis

import "github.com/ostrodb/ostro/engine/store"

// lcsOptions are what LCS was asked for.
type lcsOptions struct {
	length, indexes, withLength bool
	shortest                    int64 // runs below this are not shown
}

func lcs(c *call) verdict {
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
	if lcsTableBytes(a, b) > c.srv.settings.maxBulkBytes.Load() {
		return c.fail("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
	}
	c.answerLCS(newLCSTable(a, b), o)
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

func (c *call) answerLCS(t *lcsTable, o lcsOptions) {
	if o.length {
		c.out.Int(int64(t.length()))
		return
	}
	common, runs := t.walk()
	if !o.indexes {
		c.out.Bulk(common)
		return
	}
	shown := runs[:0]
	for _, r := range runs {
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
	c.out.Int(int64(t.length()))
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
