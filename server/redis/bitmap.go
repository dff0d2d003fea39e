package redis

import "github.com/ostrodb/ostro/engine/store"

func setbit(c *call) verdict {
	offset, ok := c.bitOffset(2, 0)
	if !ok {
		return done
	}
	bit, ok := parseInt(c.args[3])
	if !ok || bit != 0 && bit != 1 {
		return c.fail("ERR bit is not an integer or out of range")
	}
	at, mask := int(offset>>3), byte(0x80)>>(offset&7)
	k := c.key(1)
	var was bool
	wrote, v := c.modifyString(&k, func(old store.View, found bool) (store.Write, action) {
		was = at < len(old.Value) && old.Value[at]&mask != 0
		if at < len(old.Value) && was == (bit == 1) {
			c.truth(was)
			return store.Write{}, leave
		}
		value := c.grown(old.Value, max(len(old.Value), at+1))
		value[at] &^= mask
		if bit == 1 {
			value[at] |= mask
		}
		return store.Write{Value: value, ExpireAt: old.ExpireAt}, put
	})
	if wrote {
		c.truth(was)
	}
	return v
}

func getbit(c *call) verdict {
	offset, ok := c.bitOffset(2, 0)
	if !ok {
		return done
	}
	view, _, v, ok := c.read(1)
	if !ok {
		return v
	}
	at := offset >> 3
	return c.truth(at < uint64(len(view.Value)) && view.Value[at]&(0x80>>(offset&7)) != 0)
}

// bitOffset reads an argument as the offset of a bit, or answers with an error.
// With a width, "#n" means the n-th integer of that width.
func (c *call) bitOffset(i int, width uint) (uint64, bool) {
	arg, scale := c.args[i], int64(1)
	if width > 0 && len(arg) > 0 && arg[0] == '#' {
		arg, scale = arg[1:], int64(width)
	}
	n, ok := parseInt(arg)
	n *= scale
	if !ok || n < 0 || n>>3 >= c.conn.maxBulk() {
		c.out.Error("ERR bit offset is not an integer or out of range")
		return 0, false
	}
	return uint64(n), true
}

// bitUnit reads an argument as BYTE or BIT.
func (c *call) bitUnit(i int) (isBit, ok bool) {
	isBit = c.is(i, "bit")
	return isBit, isBit || c.is(i, "byte")
}

// bitRange turns a range of bytes into one of bits.
func bitRange(start, end int64, isBit bool) (first, last int64) {
	if isBit {
		return start, end
	}
	return start << 3, end<<3 + 7
}

func bitcount(c *call) verdict {
	view, found, v, ok := c.read(1)
	if !ok {
		return v
	}
	if !found {
		return c.int(0)
	}
	start, end, length, isBit := int64(0), int64(-1), int64(len(view.Value)), false
	switch len(c.args) {
	case 2:
	case 4, 5:
		if start, ok = c.intArg(2); !ok {
			return done
		}
		if end, ok = c.intArg(3); !ok {
			return done
		}
		if start < 0 && end < 0 && start > end {
			return c.int(0)
		}
		if len(c.args) == 5 {
			if isBit, ok = c.bitUnit(4); !ok {
				return c.fail(errSyntax)
			}
		}
	default:
		return c.fail(errSyntax)
	}
	if isBit {
		length <<= 3
	}
	start, end, some := clampRange(start, end, length)
	if !some {
		return c.int(0)
	}
	first, last := bitRange(start, end, isBit)
	return c.int(countBits(view.Value, first, last))
}

func bitpos(c *call) verdict {
	bit, ok := c.intArg(2)
	if !ok {
		return done
	}
	if bit != 0 && bit != 1 {
		return c.fail("ERR The bit argument must be 1 or 0.")
	}
	view, found, v, ok := c.read(1)
	if !ok {
		return v
	}
	if !found {
		return c.int(-bit)
	}
	r, ok := c.bitposRange(int64(len(view.Value)))
	if !ok {
		return done
	}
	if r.start > r.end {
		return c.int(-1)
	}
	first, last := bitRange(r.start, r.end, r.isBit)
	at := findBit(view.Value, bit == 1, first, last)
	if at < 0 && bit == 0 && !r.hasEnd {
		at = last + 1 // a string without an end goes on with zeros
	}
	return c.int(at)
}

type bitposRange struct {
	start, end    int64
	isBit, hasEnd bool
}

// bitposRange reads BITPOS' range, or answers with an error.
func (c *call) bitposRange(length int64) (r bitposRange, ok bool) {
	r.end = -1
	n := len(c.args)
	if n > 6 {
		c.out.Error(errSyntax)
		return r, false
	}
	if n > 3 {
		if r.start, ok = c.intArg(3); !ok {
			return r, false
		}
	}
	if n == 6 {
		if r.isBit, ok = c.bitUnit(5); !ok {
			c.out.Error(errSyntax)
			return r, false
		}
	}
	if n > 4 {
		r.hasEnd = true
		if r.end, ok = c.intArg(4); !ok {
			return r, false
		}
	}
	if r.isBit {
		length <<= 3
	}
	r.start = fromEnd(r.start, length)
	r.end = min(fromEnd(r.end, length), length-1)
	return r, true
}
