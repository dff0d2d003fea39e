package redis

import "github.com/ostrodb/ostro/engine/store"

func appendString(c *call) verdict {
	k := c.key(1)
	tail := c.args[2]
	var length int
	wrote, v := c.modifyString(&k, func(old store.View, found bool) (store.Write, action) {
		if length = len(old.Value) + len(tail); !c.fitsLimit(int64(length)) && found {
			c.out.Error(errTooLong)
			return store.Write{}, leave
		}
		value := c.scratch.sized(length)
		copy(value[copy(value, old.Value):], tail)
		return store.Write{Value: value, ExpireAt: old.ExpireAt}, put
	})
	if wrote {
		c.out.Int(int64(length))
	}
	return v
}

func setrange(c *call) verdict {
	offset, ok := c.intArg(2)
	if !ok {
		return done
	}
	if offset < 0 {
		return c.fail("ERR offset is out of range")
	}
	k, patch := c.key(1), c.args[3]
	var length int
	wrote, v := c.modifyString(&k, func(old store.View, found bool) (store.Write, action) {
		if len(patch) == 0 {
			c.out.Int(int64(len(old.Value)))
			return store.Write{}, leave
		}
		end, fits := addInt(offset, int64(len(patch)))
		if !fits || !c.fitsLimit(end) {
			c.out.Error(errTooLong)
			return store.Write{}, leave
		}
		length = max(len(old.Value), int(end))
		value := c.grown(old.Value, length)
		copy(value[offset:], patch)
		return store.Write{Value: value, ExpireAt: old.ExpireAt}, put
	})
	if wrote {
		c.out.Int(int64(length))
	}
	return v
}

// grown copies a value into scratch, padded with zeros to n bytes.
func (c *call) grown(value []byte, n int) []byte {
	b := c.scratch.sized(n)
	clear(b[copy(b, value):])
	return b
}

// fitsLimit reports whether a string of n bytes is allowed.
func (c *call) fitsLimit(n int64) bool { return n <= c.conn.maxBulk() }

func getrange(c *call) verdict {
	start, ok := c.intArg(2)
	if !ok {
		return done
	}
	end, ok := c.intArg(3)
	if !ok {
		return done
	}
	view, _, v, ok := c.read(1)
	if !ok {
		return v
	}
	start, end, some := clampRange(start, end, int64(len(view.Value)))
	if !some {
		view.Value, start, end = nil, 0, -1
	}
	c.out.Bulk(view.Value[start : end+1])
	return done
}

// clampRange resolves a range whose ends may be counted from the end, as GETRANGE
// and BITCOUNT do; some is false if nothing lies in it.
func clampRange(start, end, length int64) (_, _ int64, some bool) {
	if start < 0 && end < 0 && start > end {
		return 0, 0, false
	}
	start, end = fromEnd(start, length), fromEnd(end, length)
	end = min(end, length-1)
	return start, end, start <= end
}

// fromEnd resolves an index that counts from the end if it is negative; what
// lies before the beginning becomes the beginning.
func fromEnd(i, length int64) int64 {
	if i < 0 {
		i += length
	}
	return max(i, 0)
}
