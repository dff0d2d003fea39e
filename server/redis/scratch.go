package redis

import "github.com/ostrodb/ostro/engine/store"

// scratch is memory that handlers build values and lists of keys in. It belongs
// to a worker's call and is used again by the next command, so nothing in it
// outlives a handler.
type scratch struct {
	value    []byte
	keys     []store.Key
	list     keyList
	views    [batchKeys]store.View
	statuses [batchKeys]store.Status
}

const (
	batchKeys      = 64      // keys whose cache misses the store overlaps best
	keepValueBytes = 1 << 20 // a larger buffer is given back to the collector
)

// sized returns n bytes of undefined content.
func (s *scratch) sized(n int) []byte {
	if n > keepValueBytes {
		return make([]byte, n)
	}
	if cap(s.value) < n {
		s.value = make([]byte, n, 2*n)
	}
	s.value = s.value[:n]
	return s.value
}

// keysAt collects the keys at every step-th argument from first on.
func (c *call) keysAt(first, step int) []store.Key {
	keys := c.scratch.keys[:0]
	for i := first; i < len(c.args); i += step {
		keys = append(keys, c.key(i))
	}
	c.scratch.keys = keys
	return keys
}

// room is where n keys are read to.
func (s *scratch) room(n int) ([]store.View, []store.Status) {
	if n > batchKeys {
		return make([]store.View, n), make([]store.Status, n)
	}
	return s.views[:n], s.statuses[:n]
}

// readEach gets all the keys as they are at one moment, and hands each view to f in order. If one
// of them is cold the rest are still asked for, so that one fetch brings them all.
func (c *call) readEach(keys []store.Key, f func(v store.View, found bool)) store.Status {
	views, statuses := c.scratch.room(len(keys))
	if !c.ss.GetTogether(keys, views, statuses) {
		if st := c.lock(keys); st != store.OK {
			return st
		}
		defer c.ss.Abort() // f may still look at what others change then.
		c.ss.GetBatch(keys, views, statuses)
	}
	for _, st := range statuses {
		if st != store.OK && st != store.NotFound {
			return st
		}
	}
	for i, st := range statuses {
		f(views[i], st == store.OK)
	}
	return store.OK
}
