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
	m.active, m.dirty, m.bytes, m.steps = false, false, 0, 0
	clear(m.queue)
	m.queue = m.queue[:0]
	cn.unwatch()
	_ = cn.hold() // Less is never too much.
	cn.resume.exec = execProgress{}
	cn.shownMulti.Store(-1)
}

func (cn *conn) unwatch() {
	cn.unpin()
	cn.multi.unwatch(0)
}

// watch stamps keys: EXEC compares the stamps with what it finds.
func watch(c *call) verdict {
	m := &c.conn.multi
	if m.active {
		return c.fail("ERR WATCH inside MULTI is not allowed")
	}
	keys, known := c.keysAt(1, 1), len(m.watch)
	if known+len(keys) > tenantWatches && c.conn.account() != nil {
		return c.fail(errWatches)
	}
	i := 0
	st := c.readEach(keys, func(v store.View, found bool) {
		if !m.watches(c.db, keys[i].Bytes) {
			m.add(c.watched(keys[i].Bytes, v))
		}
		i++
	})
	if st != store.OK {
		m.unwatch(known)
		return c.stopped(st)
	}
	if err := c.conn.hold(); err != nil {
		m.unwatch(known)
		_ = c.conn.hold() // Less is never too much.
		return c.fail("QUOTA " + err.Error())
	}
	return c.ok()
}

// unwatch forgets all keys but the first few.
func (m *multiState) unwatch(known int) {
	clear(m.watch[known:])
	m.watch, m.keys, m.stamps = m.watch[:known], nil, 0
	for i := range m.watch {
		m.stamps += m.watch[i].size()
	}
}

func (w *watched) size() int { return watchedBytes + 2*len(w.key.Bytes) }

// watched makes a stamp that outlives the command: it owns the key's bytes and
// holds nothing of the value.
func (c *call) watched(key []byte, v store.View) watched {
	v.Value = nil
	return watched{db: c.db, key: c.ss.Key(c.db, bytes.Clone(key)), view: v}
}

// manyWatched is from how many keys on it does not pay to look at them all.
const manyWatched = 32

// add notes a key that is not watched yet.
func (m *multiState) add(w watched) {
	m.watch = append(m.watch, w)
	m.stamps += w.size()
	if m.keys != nil {
		m.keys[watchedKey{w.db, string(w.key.Bytes)}] = struct{}{}
	}
}

func (m *multiState) watches(db int, key []byte) bool {
	if len(m.watch) >= manyWatched {
		if m.keys == nil {
			m.keys = make(map[watchedKey]struct{}, 2*len(m.watch))
			for i := range m.watch {
				m.keys[watchedKey{m.watch[i].db, string(m.watch[i].key.Bytes)}] = struct{}{}
			}
		}
		_, is := m.keys[watchedKey{db, string(key)}]
		return is
	}
	return slices.ContainsFunc(m.watch, func(w watched) bool {
		return w.db == db && bytes.Equal(w.key.Bytes, key)
	})
}

func unwatch(c *call) verdict {
	c.conn.unwatch()
	_ = c.conn.hold() // Less is never too much.
	return c.ok()
}
