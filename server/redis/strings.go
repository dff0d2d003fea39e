package redis

import "github.com/ostrodb/ostro/engine/store"

func get(c *call) verdict {
	view, found, v, ok := c.read(1)
	if !ok {
		return v
	}
	c.bulkOrNull(view, found)
	return done
}

// bulkOrNull answers with a string's value, or null where there is none.
func (c *call) bulkOrNull(view store.View, found bool) {
	if found {
		c.out.Bulk(view.Value)
	} else {
		c.out.Null()
	}
}

func strlen(c *call) verdict {
	view, _, v, ok := c.read(1)
	if !ok {
		return v
	}
	return c.int(int64(len(view.Value)))
}

func getset(c *call) verdict {
	return c.replace(store.Write{Value: c.args[2]}, put)
}

func getdel(c *call) verdict {
	return c.replace(store.Write{}, remove)
}

// replace writes or removes the key and answers with the value it had.
func (c *call) replace(w store.Write, act action) verdict {
	k := c.key(1)
	_, v := c.modifyString(&k, func(old store.View, found bool) (store.Write, action) {
		c.bulkOrNull(old, found)
		if !found && act == remove {
			return w, leave
		}
		return w, act
	})
	return v
}

// getex is GET that may also change the key's expiry.
func getex(c *call) verdict {
	o, ok := c.setOptions(2, false)
	if !ok {
		return c.fail(errSyntax)
	}
	k := c.key(1)
	_, v := c.modifyString(&k, func(old store.View, found bool) (store.Write, action) {
		if !found {
			c.out.Null()
			return store.Write{}, leave
		}
		w := store.Write{Value: old.Value, Kind: old.Kind}
		if o.expiry.takesTime() {
			at, ok := c.expireAt(o)
			if !ok {
				return w, leave
			}
			w.ExpireAt = at
		}
		c.out.Bulk(old.Value)
		switch {
		case o.expiry == expiryNone, o.expiry == expiryPersist && old.ExpireAt == 0:
			return w, leave
		case o.expiry != expiryPersist && w.ExpireAt <= c.now:
			return w, remove
		}
		return w, put
	})
	return v
}
