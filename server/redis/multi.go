package redis

import (
	"bytes"
	"slices"

	"github.com/ostrodb/ostro/engine/store"
)

func multi(c *call) verdict {
	m := &c.conn.multi
	if m.active {
		return c.fail("ERR MULTI calls can not be nested")
	}
	m.active = true
	c.conn.shownMulti.Store(0)
	return c.ok()
}

func discard(c *call) verdict {
	if !c.conn.multi.active {
		return c.fail("ERR DISCARD without MULTI")
	}
	c.conn.endMulti()
	return c.ok()
}

// endMulti forgets the transaction and everything watched.
func (cn *conn) endMulti() {
	m := &cn.multi
	m.active, m.dirty = false, false
	clear(m.queue)
	m.queue = m.queue[:0]
	cn.unwatch()
	cn.resume.exec = execProgress{}
	cn.shownMulti.Store(-1)
}

func (cn *conn) unwatch() {
	cn.unpin()
	clear(cn.multi.watch)
	cn.multi.watch = cn.multi.watch[:0]
}

// watch stamps keys: EXEC compares the stamps with what it finds.
func watch(c *call) verdict {
	m := &c.conn.multi
	if m.active {
		return c.fail("ERR WATCH inside MULTI is not allowed")
	}
	keys, known := c.keysAt(1, 1), len(m.watch)
	i := 0
	st := c.readEach(keys, func(v store.View, found bool) {
		if !m.watches(c.db, keys[i].Bytes) {
			m.watch = append(m.watch, c.watched(keys[i].Bytes, v))
		}
		i++
	})
	if st != store.OK {
		m.watch = m.watch[:known]
		return c.stopped(st)
	}
	return c.ok()
}

// watched makes a stamp that outlives the command: it owns the key's bytes and
// holds nothing of the value.
func (c *call) watched(key []byte, v store.View) watched {
	v.Value = nil
	return watched{db: c.db, key: c.ss.Key(c.db, bytes.Clone(key)), view: v}
}

func (m *multiState) watches(db int, key []byte) bool {
	return slices.ContainsFunc(m.watch, func(w watched) bool {
		return w.db == db && bytes.Equal(w.key.Bytes, key)
	})
}

func unwatch(c *call) verdict {
	c.conn.unwatch()
	return c.ok()
}
