package redis

import (
	"math"

	"github.com/ostrodb/ostro/engine/store"
)

func incr(c *call) verdict { return c.increment(1) }
func decr(c *call) verdict { return c.increment(-1) }

func incrby(c *call) verdict {
	n, ok := c.intArg(2)
	if !ok {
		return done
	}
	return c.increment(n)
}

func decrby(c *call) verdict {
	n, ok := c.intArg(2)
	if !ok {
		return done
	}
	if n == math.MinInt64 {
		return c.fail("ERR decrement would overflow")
	}
	return c.increment(-n)
}

// increment adds to the integer that a string spells; an absent key counts as 0.
// The expiry stays.
func (c *call) increment(delta int64) verdict {
	k := c.key(1)
	var sum int64
	wrote, v := c.modifyString(&k, func(old store.View, found bool) (store.Write, action) {
		var n int64
		if found {
			var ok bool
			if n, ok = parseInt(old.Value); !ok {
				c.out.Error(errNotInteger)
				return store.Write{}, leave
			}
		}
		var fits bool
		if sum, fits = addInt(n, delta); !fits {
			c.out.Error("ERR increment or decrement would overflow")
			return store.Write{}, leave
		}
		return store.Write{Value: c.formatInt(sum), ExpireAt: old.ExpireAt}, put
	})
	if wrote {
		c.out.Int(sum)
	}
	return v
}

func incrbyfloat(c *call) verdict {
	k := c.key(1)
	wrote, v := c.modifyString(&k, func(old store.View, found bool) (store.Write, action) {
		text := old.Value
		if !found {
			text = []byte("0")
		}
		value, ok1 := parseLongDouble(text)
		delta, ok2 := parseLongDouble(c.args[2])
		if !ok1 || !ok2 {
			c.out.Error(errNotFloat)
			return store.Write{}, leave
		}
		sum, finite := addLongDouble(value, delta)
		if !finite {
			c.out.Error("ERR increment would produce NaN or Infinity")
			return store.Write{}, leave
		}
		c.scratch.value = appendLongDouble(c.scratch.value[:0], sum)
		return store.Write{Value: c.scratch.value, ExpireAt: old.ExpireAt}, put
	})
	if wrote {
		c.out.Bulk(c.scratch.value)
	}
	return v
}
