package redis

import "github.com/ostrodb/ostro/engine/store"

// action is what a command decided to do with a key.
type action uint8

const (
	leave  action = iota // the command is answered; nothing is written
	put                  // write what came with the decision
	remove               // delete the key
)

// modify reads a key, lets decide look at it, and carries the decision out only
// if the key is still as it was read; otherwise it begins again. decide may
// therefore run several times; what it answered in vain is taken back. It must
// answer when it leaves the key alone. When modify wrote, the caller may answer.
//
// The view is passed by value so that it stays off the heap.
func (c *call) modify(k *store.Key, decide func(v store.View, found bool) (store.Write, action)) (wrote bool, _ verdict) {
	mark := c.out.Len()
	for {
		v, st := c.ss.Get(k)
		if st != store.OK && st != store.NotFound {
			return false, c.stopped(st)
		}
		c.out.Truncate(mark)
		w, act := decide(v, st == store.OK)
		switch act {
		case leave:
			return false, done
		case put:
			st = c.ss.Put(k, w, &v)
		case remove:
			st = c.ss.Delete(k, &v)
		}
		switch st {
		case store.OK, store.NotFound:
			return true, done
		case store.Conflict:
			continue
		default:
			c.out.Truncate(mark)
			return false, c.stopped(st)
		}
	}
}

// modifyString is modify for commands on strings: a key of another kind is
// answered with an error.
func (c *call) modifyString(k *store.Key, decide func(v store.View, found bool) (store.Write, action)) (wrote bool, _ verdict) {
	return c.modify(k, func(v store.View, found bool) (store.Write, action) {
		if found && !isString(v) {
			c.out.Error(errWrongType)
			return store.Write{}, leave
		}
		return decide(v, found)
	})
}

// atomically runs body as one transaction over keys: others see all of its
// writes or none. Inside EXEC, which has locked the keys of all its commands
// already, body joins the transaction that is open.
//
// body must not touch other keys, and answers the client as if it had succeeded.
// If it answers with an error, nothing that it wrote stays.
func (c *call) atomically(keys []store.Key, body func() verdict) verdict {
	if c.conn.multi.active {
		return body()
	}
	if st := c.lock(keys); st != store.OK {
		return c.stopped(st)
	}
	return c.commit(body)
}

// lockTries bounds how often a transaction begins again because a record changed
// under its hands.
const lockTries = 1000

func (c *call) lock(keys []store.Key) (st store.Status) {
	for range lockTries {
		if st = c.ss.Lock(keys); st != store.Conflict {
			break
		}
	}
	return st
}

// commit runs body in the open transaction and ends it.
func (c *call) commit(body func() verdict) verdict {
	mark := c.out.Len()
	if v := body(); v == cold || c.out.Bytes()[mark] == '-' {
		c.ss.Abort()
		return v
	}
	if st := c.ss.Commit(); st != store.OK {
		c.out.Truncate(mark)
		return c.stopped(st)
	}
	return done
}

// write puts or deletes inside atomically, where nothing conflicts. A status
// that must end the command is answered; then ok is false.
func (c *call) write(st store.Status) (v verdict, ok bool) {
	if st == store.OK || st == store.NotFound {
		return done, true
	}
	return c.stopped(st), false
}
