package redis

import (
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

func mget(c *call) verdict {
	mark := c.out.Len()
	c.out.Array(len(c.args) - 1)
	over := false
	st := c.readEach(c.keysAt(1, 1), func(v store.View, found bool) {
		if over = over || c.overReply(c.out.Len()-mark+len(v.Value)); !over {
			c.bulkOrNull(v, found && isString(v))
		}
	})
	if over && st == store.OK {
		c.out.Truncate(mark)
		return c.fail(errReplyValues)
	}
	if st != store.OK {
		c.out.Truncate(mark)
		return c.stopped(st)
	}
	return done
}

func mset(c *call) verdict   { return c.setMany(false) }
func msetnx(c *call) verdict { return c.setMany(true) }

// setMany writes all its pairs or, if ifAbsent and one of the keys is there, none.
func (c *call) setMany(ifAbsent bool) verdict {
	if len(c.args)%2 == 0 {
		return c.fail("ERR wrong number of arguments for '" + c.cmd.name + "' command")
	}
	keys := c.keysAt(1, 2)
	for i := range keys {
		if len(keys[i].Bytes) > record.MaxKeyBytes {
			return c.fail(errKeyTooLong) // before any of the others is written
		}
	}
	return c.atomically(keys, func() verdict {
		if ifAbsent {
			switch n, st := c.countPresent(keys); {
			case st != store.OK:
				return c.stopped(st)
			case n > 0:
				return c.int(0)
			}
		}
		for i := range keys {
			st := c.ss.Put(&keys[i], store.Write{Value: c.args[2+2*i]}, nil)
			if v, ok := c.write(st); !ok {
				return v
			}
		}
		if ifAbsent {
			return c.int(1)
		}
		return c.ok()
	})
}

// countPresent counts how many of the keys exist; a key named twice counts twice.
func (c *call) countPresent(keys []store.Key) (n int64, _ store.Status) {
	st := c.readEach(keys, func(_ store.View, found bool) {
		if found {
			n++
		}
	})
	return n, st
}
