package redis

import (
	"bytes"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// del serves DEL and UNLINK: the store never frees memory in the foreground, so
// the two do not differ.
func del(c *call) verdict {
	if len(c.args) == 2 {
		k := c.key(1)
		st := c.ss.Delete(&k, nil)
		if v, ok := c.write(st); !ok {
			return v
		}
		return c.truth(st == store.OK)
	}
	keys := c.keysAt(1, 1)
	return c.atomically(keys, func() verdict {
		var n int64
		for i := range keys {
			st := c.ss.Delete(&keys[i], nil)
			if v, ok := c.write(st); !ok {
				return v
			}
			if st == store.OK {
				n++
			}
		}
		return c.int(n)
	})
}

// exists serves EXISTS and TOUCH.
func exists(c *call) verdict {
	n, st := c.countPresent(c.keysAt(1, 1))
	if st != store.OK {
		return c.stopped(st)
	}
	return c.int(n)
}

func typeOf(c *call) verdict {
	k := c.key(1)
	view, st := c.ss.Get(&k)
	switch st {
	case store.OK:
		c.out.SimpleString(kindName(view.Kind))
	case store.NotFound:
		c.out.SimpleString("none")
	default:
		return c.stopped(st)
	}
	return done
}

// kindName is what TYPE says.
func kindName(k record.Kind) string {
	switch k {
	case record.KindString:
		return "string"
	case record.KindList:
		return "list"
	case record.KindSet:
		return "set"
	case record.KindZSet:
		return "zset"
	case record.KindHash:
		return "hash"
	case record.KindStream:
		return "stream"
	}
	return "unknown"
}

func rename(c *call) verdict   { return c.rename(false) }
func renamenx(c *call) verdict { return c.rename(true) }

func (c *call) rename(ifAbsent bool) verdict {
	keys := c.keysAt(1, 1)
	return c.atomically(keys, func() verdict {
		src, st := c.ss.Get(&keys[0])
		switch {
		case st == store.NotFound:
			return c.fail(errNoSuchKey)
		case st != store.OK:
			return c.stopped(st)
		}
		same := bytes.Equal(c.args[1], c.args[2])
		if !same {
			moved, v := c.transfer(&keys[0], &keys[1], src, !ifAbsent, true)
			if !moved {
				return v
			}
		}
		if ifAbsent {
			return c.truth(!same)
		}
		return c.ok()
	})
}

// transfer writes the view of one key to another and removes the first if asked.
// Unless it may overwrite, an existing target ends the command with 0.
func (c *call) transfer(from, to *store.Key, src store.View, overwrite, removeSource bool) (moved bool, _ verdict) {
	if !overwrite {
		switch _, st := c.ss.Get(to); st {
		case store.OK:
			return false, c.int(0)
		case store.NotFound:
		default:
			return false, c.stopped(st)
		}
	}
	w := store.Write{Value: src.Value, ExpireAt: src.ExpireAt, Kind: src.Kind}
	if v, ok := c.write(c.ss.Put(to, w, nil)); !ok {
		return false, v
	}
	if removeSource {
		if v, ok := c.write(c.ss.Delete(from, nil)); !ok {
			return false, v
		}
	}
	return true, done
}

func move(c *call) verdict {
	db, ok := c.dbArg(2)
	if !ok {
		return done
	}
	if c.routing != nil {
		return c.fail("ERR MOVE is not allowed in cluster mode")
	}
	if db == c.db {
		return c.fail(errSameObject)
	}
	return c.transferTo(c.ss.Key(db, c.args[1]), false, true)
}

func copyKey(c *call) verdict {
	db, replace, ok := c.copyOptions()
	if !ok {
		return done
	}
	if db != c.conn.firstDB && c.routing != nil {
		return c.fail("ERR Copying to another database is not allowed in cluster mode")
	}
	if db == c.db && bytes.Equal(c.args[1], c.args[2]) {
		return c.fail(errSameObject)
	}
	return c.transferTo(c.ss.Key(db, c.args[2]), replace, false)
}

// transferTo moves or copies the first key to another and answers 1, or 0 where
// the first is absent or the other is in the way.
func (c *call) transferTo(target store.Key, overwrite, removeSource bool) verdict {
	keys := append(c.scratch.keys[:0], c.key(1), target)
	c.scratch.keys = keys
	return c.atomically(keys, func() verdict {
		src, st := c.ss.Get(&keys[0])
		switch {
		case st == store.NotFound:
			return c.int(0)
		case st != store.OK:
			return c.stopped(st)
		}
		moved, v := c.transfer(&keys[0], &keys[1], src, overwrite, removeSource)
		if !moved {
			return v
		}
		return c.int(1)
	})
}

// copyOptions reads COPY's options, or answers with an error.
func (c *call) copyOptions() (db int, replace, ok bool) {
	db = c.db
	for i := 3; i < len(c.args); i++ {
		switch {
		case c.is(i, "replace"):
			replace = true
		case c.is(i, "db") && i+1 < len(c.args):
			i++
			if db, ok = c.dbArg(i); !ok {
				return 0, false, false
			}
		default:
			c.out.Error(errSyntax)
			return 0, false, false
		}
	}
	return db, replace, true
}
