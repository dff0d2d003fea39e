package store_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/ostrodb/ostro/engine/store"
)

// moveClient changes and reads keys of its own at the target of a move. Its every answer
// must be the map's.
type moveClient struct {
	m   *move
	n   int
	ss  *store.Session
	rng *rand.Rand
	seq uint64

	keys []named
}

// clients lets all clients do as many random things.
func (m *move) clients(steps int, life uint64) {
	m.t.Helper()
	var wg sync.WaitGroup
	for n := range moveClients {
		ss, err := m.st.NewSession()
		if err != nil {
			m.t.Fatal(err)
		}
		c := &moveClient{m: m, n: n, ss: ss, rng: rand.New(rand.NewPCG(m.seed, uint64(n))), seq: life << 32}
		c.find()
		wg.Go(func() {
			defer ss.Close()
			if len(c.keys) == 0 {
				return // None of the ranges has one.
			}
			for range steps {
				if err := c.step(); err != nil {
					m.t.Errorf("client %d: %v", n, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// step does one thing, while the time stands still.
func (c *moveClient) step() error {
	if c.rng.IntN(30) == 0 {
		c.m.clock.Lock()
		c.m.e.clock.Add(int64(c.rng.IntN(20)))
		c.m.clock.Unlock()
	}
	c.m.clock.RLock()
	defer c.m.clock.RUnlock()
	switch r := c.rng.IntN(20); {
	case r < 4:
		return c.look()
	case r < 7:
		return c.put()
	case r < 9:
		return c.change()
	case r < 12:
		return c.remove()
	case r < 14:
		return c.swap()
	case r < 17:
		return c.once()
	case r < 18:
		return c.batch()
	case r < 19:
		return c.retry()
	}
	return c.transact()
}

// named is a key that a client may use.
type named struct {
	db   int
	name string
}

// find lists the client's keys in the ranges that arrive: of those that the source may have,
// and new ones.
func (c *moveClient) find() {
	for db := range estateDBs {
		for n := c.n; n < 100*estateKeys; n += moveClients {
			name := fmt.Sprintf("key:%d", n)
			if k := c.ss.Key(db, []byte(name)); c.m.owns(k.Place) && (n < estateKeys || len(c.keys) < 30) {
				c.keys = append(c.keys, named{db, name})
			}
		}
	}
}

// draw gives one of them.
func (c *moveClient) draw() (db int, name string, k store.Key) {
	d := c.keys[c.rng.IntN(len(c.keys))]
	return d.db, d.name, c.ss.Key(d.db, []byte(d.name))
}

func (c *moveClient) at(db int, name string) (thing, bool) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	return c.m.e.at(db, name)
}

func (c *moveClient) set(db int, name string, v thing) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.m.e.want[db][name] = v
}

func (c *moveClient) unset(db int, name string) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	delete(c.m.e.want[db], name)
}

func (c *moveClient) thing() thing {
	e := estate{rng: c.rng, clock: c.m.e.clock, expires: c.m.e.expires}
	return e.thing()
}

func (c *moveClient) fail(what, name string, st store.Status) error {
	return fmt.Errorf("%s %s: %v %v", what, name, st, c.ss.Err())
}

func (c *moveClient) look() error {
	db, name, _ := c.draw()
	want, there := c.at(db, name)
	return (&subject{}).look(c.ss, db, name, want, there)
}

// put is a blind write.
func (c *moveClient) put() error {
	db, name, k := c.draw()
	v := c.thing()
	if st := attempt(c.ss, func() store.Status { return c.ss.Put(&k, v.write(), nil) }); st != store.OK {
		return c.fail("put", name, st)
	}
	c.set(db, name, v)
	return nil
}

// change reads and writes.
func (c *moveClient) change() error {
	db, name, k := c.draw()
	was, there := c.at(db, name)
	var wrong error
	next := thing{kind: was.kind, expire: was.expire}
	st := attempt(c.ss, func() store.Status {
		return c.ss.RMW(&k, func(old *store.View, exists bool) (store.Write, bool) {
			if exists != there || exists && !bytes.Equal(old.Value, was.value) {
				wrong = fmt.Errorf("change of %s: it is %s (%v), want %s (%v)", name, brief(old.Value), exists, brief(was.value), there)
			}
			next.value = append(bytes.Clone(old.Value), '+')
			return next.write(), true
		})
	})
	if wrong != nil {
		return wrong
	}
	if st != store.OK {
		return c.fail("change", name, st)
	}
	c.set(db, name, next)
	return nil
}

func (c *moveClient) remove() error {
	db, name, k := c.draw()
	_, there := c.at(db, name)
	if st := attempt(c.ss, func() store.Status { return c.ss.Delete(&k, nil) }); st != status(there) {
		return c.fail(fmt.Sprintf("remove (there: %v)", there), name, st)
	}
	c.unset(db, name)
	return nil
}

// swap writes if the key is as it was read in a round before.
func (c *moveClient) swap() error {
	db, name, k := c.draw()
	_, there := c.at(db, name)
	var v store.View
	st := attempt(c.ss, func() (st store.Status) { v, st = c.ss.Get(&k); return st })
	if st != status(there) {
		return c.fail("read before a swap", name, st)
	}
	next := c.thing()
	switch st := attempt(c.ss, func() store.Status { return c.ss.Put(&k, next.write(), &v) }); {
	case st == store.OK:
		c.set(db, name, next)
	case st == store.Conflict && !there: // A neighbour in its stripe was removed, which looks the same.
	default:
		return c.fail("swap", name, st)
	}
	return nil
}

// once runs an operation, often twice.
func (c *moveClient) once() error {
	db, name, k := c.draw()
	was, there := c.at(db, name)
	c.seq++
	id := store.OpID{Client: uint64(100 + c.n), Seq: c.seq}
	next, gone := c.thing(), c.rng.IntN(3) == 0
	answer := fmt.Sprint(c.rng.Uint64())
	var wrong error
	for try := range 1 + c.rng.IntN(2) {
		var result []byte
		var again bool
		st := attempt(c.ss, func() (st store.Status) {
			w := next.write()
			result, again, st = c.ss.Once(&k, id, func(old *store.View, exists bool) store.Effect {
				if exists != there || exists && !bytes.Equal(old.Value, was.value) {
					wrong = fmt.Errorf("operation on %s: it is %s (%v), want %s (%v)", name, brief(old.Value), exists, brief(was.value), there)
				}
				if gone {
					return store.Effect{Delete: true, Result: []byte(answer)}
				}
				return store.Effect{Write: &w, Result: []byte(answer)}
			})
			result = bytes.Clone(result)
			return st
		})
		switch {
		case wrong != nil:
			return wrong
		case st != store.OK:
			return c.fail("operation on", name, st)
		case string(result) != answer || again != (try > 0):
			return fmt.Errorf("try %d of an operation on %s: %q (again: %v), want %q", try, name, result, again, answer)
		}
	}
	if gone {
		c.unset(db, name)
	} else {
		c.set(db, name, next)
	}
	return nil
}

// retry tries an operation again that the source has run.
func (c *moveClient) retry() error {
	if len(c.m.results) == 0 {
		return nil
	}
	d := c.m.results[c.rng.IntN(len(c.m.results))]
	k := c.ss.Key(d.db, []byte(d.name))
	if !c.m.owns(k.Place) {
		return nil
	}
	var result []byte
	var again bool
	st := attempt(c.ss, func() (st store.Status) {
		result, again, st = c.ss.Once(&k, d.id, func(*store.View, bool) store.Effect { return store.Effect{Result: []byte("ran again")} })
		result = bytes.Clone(result)
		return st
	})
	if st != store.OK || !again || string(result) != d.result {
		return fmt.Errorf("the source ran %v on %s and answered %q, the target answers %q (again: %v, %v)", d.id, d.name, d.result, result, again, st)
	}
	return nil
}

// batch reads several keys at once.
func (c *moveClient) batch() error {
	var keys []store.Key
	var wants []thing
	var there []bool
	for range 1 + c.rng.IntN(10) {
		db, name, k := c.draw()
		want, ok := c.at(db, name)
		keys, wants, there = append(keys, k), append(wants, want), append(there, ok)
	}
	views, sts := make([]store.View, len(keys)), make([]store.Status, len(keys))
	var wrong error
	attempt(c.ss, func() store.Status {
		c.ss.GetBatch(keys, views, sts)
		wrong = nil
		for i, st := range sts {
			switch {
			case st == store.Cold:
				return st
			case st != status(there[i]), there[i] && !bytes.Equal(views[i].Value, wants[i].value):
				wrong = fmt.Errorf("batch: %s is %v %s, want %v %s", keys[i].Bytes, st, brief(views[i].Value), there[i], brief(wants[i].value))
			}
		}
		return store.OK
	})
	return wrong
}

// transact reads and changes several keys at once.
func (c *moveClient) transact() error {
	type part struct {
		db    int
		name  string
		k     store.Key
		was   thing
		there bool
		next  *thing
	}
	parts := map[string]*part{}
	var keys []store.Key
	for range 1 + c.rng.IntN(4) {
		db, name, k := c.draw()
		p := &part{db: db, name: name, k: k}
		p.was, p.there = c.at(db, name)
		if v := c.thing(); c.rng.IntN(3) > 0 {
			p.next = &v
		}
		if id := fmt.Sprint(db, name); parts[id] == nil {
			parts[id] = p
			keys = append(keys, k)
		}
	}
	var wrong error
	st := attempt(c.ss, func() store.Status {
		if st := c.ss.Lock(keys); st != store.OK {
			return st
		}
		for _, p := range parts {
			v, st := c.ss.Get(&p.k)
			if st != status(p.there) || p.there && !bytes.Equal(v.Value, p.was.value) {
				wrong = fmt.Errorf("transaction: %s is %v %s, want %v %s", p.name, st, brief(v.Value), p.there, brief(p.was.value))
			}
			if p.next != nil {
				st = c.ss.Put(&p.k, p.next.write(), nil)
			} else {
				st = c.ss.Delete(&p.k, nil)
			}
			if st != store.OK && st != store.NotFound {
				c.ss.Abort()
				return st
			}
		}
		return c.ss.Commit()
	})
	switch {
	case wrong != nil:
		return wrong
	case st == store.TooLarge:
		return nil // Many values do not fit one batch of a small segment.
	case st != store.OK:
		return c.fail("transaction", "", st)
	}
	for _, p := range parts {
		if p.next != nil {
			c.set(p.db, p.name, *p.next)
		} else {
			c.unset(p.db, p.name)
		}
	}
	return nil
}
