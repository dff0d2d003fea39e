package redis

import "github.com/ostrodb/ostro/engine/store"

func bitop(c *call) verdict {
	op, ok := bitOperationByName(c.args[1])
	if !ok {
		return c.fail(errSyntax)
	}
	if op == bitNot && len(c.args) != 4 {
		return c.fail("ERR BITOP NOT must be called with a single source key.")
	}
	keys := c.keysAt(2, 1)
	return c.atomically(keys, func() verdict { return c.storeBits(op, keys) })
}

// storeBits combines all keys but the first into the first, and removes it if
// nothing comes of them.
func (c *call) storeBits(op bitOperation, keys []store.Key) verdict {
	target, sources := &keys[0], make([][]byte, 0, len(keys)-1)
	length, total, wrongType := 0, 0, false
	st := c.readEach(keys[1:], func(v store.View, found bool) {
		wrongType = wrongType || found && !isString(v)
		length, total = max(length, len(v.Value)), total+len(v.Value)
		sources = append(sources, v.Value)
	})
	switch {
	case st != store.OK:
		return c.stopped(st)
	case wrongType:
		return c.fail(errWrongType)
	case c.overReply(total):
		return c.fail(errSources)
	case length == 0:
		st = c.ss.Delete(target, nil)
	default:
		value := c.scratch.sized(length)
		combineBits(value, op, sources)
		st = c.ss.Put(target, store.Write{Value: value}, nil)
	}
	if v, ok := c.write(st); !ok {
		return v
	}
	return c.int(int64(length))
}

func bitOperationByName(name []byte) (bitOperation, bool) {
	switch {
	case equalFold(name, "and"):
		return bitAnd, true
	case equalFold(name, "or"):
		return bitOr, true
	case equalFold(name, "xor"):
		return bitXor, true
	case equalFold(name, "not"):
		return bitNot, true
	}
	return 0, false
}
