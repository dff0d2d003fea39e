package redis

import "github.com/ostrodb/ostro/engine/store"

// Redis keeps a string of up to so many bytes in one piece with its header.
const embeddedStringBytes = 44

func objectEncoding(c *call) verdict {
	return c.inspect(func(v store.View) { c.out.BulkString(encodingName(v)) })
}

// objectRefcount is always 1: a record belongs to its key alone.
func objectRefcount(c *call) verdict {
	return c.inspect(func(store.View) { c.out.Int(1) })
}

// objectIdletime is always 0: reading a record leaves no trace on it.
func objectIdletime(c *call) verdict {
	return c.inspect(func(store.View) { c.out.Int(0) })
}

func objectFreq(c *call) verdict {
	return c.inspect(func(store.View) {
		c.out.Error("ERR An LFU maxmemory policy is not selected, access frequency not tracked. " +
			"Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
	})
}

// inspect answers about the key that follows a subcommand, null if there is none.
func (c *call) inspect(answer func(store.View)) verdict {
	k := c.key(2)
	view, st := c.ss.Get(&k)
	switch st {
	case store.OK:
		answer(view)
	case store.NotFound:
		c.out.Null()
	default:
		return c.stopped(st)
	}
	return done
}

// encodingName is how Redis would keep a value that was just written by SET.
func encodingName(v store.View) string {
	if !isString(v) {
		return "raw"
	}
	if _, isInt := parseInt(v.Value); isInt {
		return "int"
	}
	if len(v.Value) <= embeddedStringBytes {
		return "embstr"
	}
	return "raw"
}
