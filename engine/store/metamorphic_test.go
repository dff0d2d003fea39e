package store_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// One list of operations, many kinds of stores: each must answer like a map.

// Without -rapid.checks there are few: every list runs on all stores.
func init() {
	if err := flag.Set("rapid.checks", strconv.Itoa(scale(30))); err != nil {
		panic(err)
	}
}

// subject is one of the stores.
type subject struct {
	name   string
	opts   store.Options
	lasts  bool // it may be reopened in the middle
	forget bool // it may answer "absent" at any time, and then mean it
	dev    *device.Memory
	st     *store.Store
	ss     [2]*store.Session
	lost   map[string]bool // keys that a forgetful store was seen to have forgotten
	copied bool            // it has copies elsewhere
	copies *hlogtest.Copies
}

func subjects(clock *atomic.Int64) []*subject {
	const kib = 1 << 10
	all := []*subject{
		{name: "memory", opts: store.Options{SegmentBytes: 16 * kib}},
		{name: "checkpoint", opts: store.Options{SegmentBytes: 4 * kib, Durability: store.Checkpoint}, lasts: true},
		{name: "checkpoint/spill", opts: store.Options{SegmentBytes: 4 * kib, Durability: store.Checkpoint, MemoryBytes: 64 * kib}, lasts: true},
		{name: "everysec", opts: store.Options{SegmentBytes: 8 * kib, Durability: store.EverySec}, lasts: true},
		{name: "everysec/spill", opts: store.Options{SegmentBytes: 4 * kib, Durability: store.EverySec, MemoryBytes: 64 * kib}, lasts: true},
		{name: "always/spill", opts: store.Options{SegmentBytes: 4 * kib, Durability: store.Always, MemoryBytes: 64 * kib}, lasts: true},
		{name: "memory/evict", opts: store.Options{SegmentBytes: 4 * kib, MemoryBytes: 64 * kib, Policy: store.Evict}, forget: true},
		{name: "everysec/evict", opts: store.Options{SegmentBytes: 4 * kib, Durability: store.EverySec, MemoryBytes: 64 * kib, Policy: store.Evict}, lasts: true, forget: true},
		{name: "everysec/spill/copied", opts: store.Options{SegmentBytes: 4 * kib, Durability: store.EverySec, MemoryBytes: 64 * kib}, lasts: true, copied: true},
		{name: "always/evict/copied", opts: store.Options{SegmentBytes: 4 * kib, Durability: store.Always, MemoryBytes: 64 * kib, Policy: store.Evict}, lasts: true, forget: true, copied: true},
	}
	for _, s := range all {
		s.opts.Heads, s.opts.Now, s.opts.Databases, s.opts.KeepResults = 2, clock.Load, 3, keepFor
		if s.opts.Durability != store.None {
			s.dev = device.NewMemory()
			s.opts.Device = s.dev
		}
		s.lost = map[string]bool{}
	}
	return all
}

func (s *subject) open(t *rapid.T) {
	var err error
	switch {
	case !s.copied:
	case s.copies == nil:
		s.copies = hlogtest.New(t, 1)
		s.opts.Replicator = s.copies
	default:
		s.copies = s.copies.Next()
		s.opts.Replicator = s.copies
	}
	if s.st, err = store.Open(s.opts); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	for i := range s.ss {
		if s.ss[i], err = s.st.NewSession(); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
}

func (s *subject) close(t *rapid.T) {
	for _, ss := range s.ss {
		ss.Close()
	}
	if err := s.st.Close(); err != nil {
		t.Fatalf("%s: close: %v", s.name, err)
	}
}

// model is what all of them must be like.
type model struct {
	t     *rapid.T
	clock *atomic.Int64
	dbs   [3]map[string]thing
	all   []*subject
	ops   []operation
}

type thing struct {
	value  []byte
	expire int64
	kind   record.Kind
}

func (m *model) at(db int, key string) (thing, bool) {
	v, ok := m.dbs[db][key]
	if ok && v.expire != 0 && v.expire <= m.clock.Load() {
		return thing{}, false
	}
	return v, ok
}

// each runs f on all stores.
func (m *model) each(what string, f func(s *subject, ss *store.Session, n int) error) {
	session := rapid.IntRange(0, 1).Draw(m.t, "session")
	for n, s := range m.all {
		if err := f(s, s.ss[session], n); err != nil {
			m.t.Fatalf("%s: %s: %v", s.name, what, err)
		}
	}
}

// expect compares a status; a forgetful store may have lost the key.
func (s *subject) expect(db int, key string, got, want store.Status) error {
	id := fmt.Sprint(db, "/", key)
	if s.forget && want == store.OK && got == store.NotFound {
		s.lost[id] = true
		return nil
	}
	if s.forget && got == store.OK && s.lost[id] && want == store.OK {
		return fmt.Errorf("%s is back though it was forgotten", key)
	}
	if got != want {
		return fmt.Errorf("%s is %v, want %v", key, got, want)
	}
	return nil
}

func (m *model) draw() (db int, key string) {
	db = rapid.IntRange(0, 2).Draw(m.t, "db")
	return db, fmt.Sprintf("key:%d", rapid.IntRange(0, 15).Draw(m.t, "key"))
}

func (m *model) drawThing() thing {
	size := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 40), rapid.IntRange(0, 300), rapid.IntRange(500, 6000)).Draw(m.t, "bytes")
	v := thing{
		value: bytes.Repeat([]byte{rapid.Byte().Draw(m.t, "fill")}, size),
		kind:  record.Kind(rapid.IntRange(0, 5).Draw(m.t, "kind")),
	}
	if rapid.IntRange(0, 4).Draw(m.t, "expires") == 0 {
		v.expire = m.clock.Load() + rapid.Int64Range(1, 40).Draw(m.t, "after")
	}
	return v
}

func (v thing) write() store.Write {
	return store.Write{Value: v.value, ExpireAt: v.expire, Kind: v.kind}
}

func (m *model) put() {
	db, key := m.draw()
	v := m.drawThing()
	m.each("put", func(s *subject, ss *store.Session, _ int) error {
		k := ss.Key(db, []byte(key))
		delete(s.lost, fmt.Sprint(db, "/", key))
		if st := attempt(ss, func() store.Status { return ss.Put(&k, v.write(), nil) }); st != store.OK {
			return fmt.Errorf("%v %w", st, ss.Err())
		}
		return nil
	})
	m.dbs[db][key] = v
}

func (m *model) get() {
	db, key := m.draw()
	want, there := m.at(db, key)
	m.each("get", func(s *subject, ss *store.Session, _ int) error { return s.look(ss, db, key, want, there) })
}

// look reads a key and compares all that is known of it.
func (s *subject) look(ss *store.Session, db int, key string, want thing, there bool) (err error) {
	k := ss.Key(db, []byte(key))
	st := attempt(ss, func() store.Status {
		v, st := ss.Get(&k)
		err = nil
		if st == store.OK && there && (!bytes.Equal(v.Value, want.value) || v.ExpireAt != want.expire || v.Kind != want.kind) {
			err = fmt.Errorf("%s is %s %d %v, want %s %d %v", key, brief(v.Value), v.ExpireAt, v.Kind, brief(want.value), want.expire, want.kind)
		}
		if st == store.OK != v.Exists() {
			err = fmt.Errorf("%s: status %v, exists %v", key, st, v.Exists())
		}
		return st
	})
	if err != nil {
		return err
	}
	return s.expect(db, key, st, status(there))
}

func status(there bool) store.Status {
	if there {
		return store.OK
	}
	return store.NotFound
}

func (m *model) delete() {
	db, key := m.draw()
	_, there := m.at(db, key)
	m.each("delete", func(s *subject, ss *store.Session, _ int) error {
		k := ss.Key(db, []byte(key))
		st := attempt(ss, func() store.Status { return ss.Delete(&k, nil) })
		err := s.expect(db, key, st, status(there))
		delete(s.lost, fmt.Sprint(db, "/", key))
		return err
	})
	delete(m.dbs[db], key)
}

// modify appends to a value, or leaves it.
func (m *model) modify() {
	db, key := m.draw()
	old, there := m.at(db, key)
	tail := []byte(rapid.StringN(0, 20, 40).Draw(m.t, "tail"))
	leave := rapid.IntRange(0, 4).Draw(m.t, "leave") == 0
	m.each("modify", func(s *subject, ss *store.Session, _ int) error {
		k := ss.Key(db, []byte(key))
		var saw bool
		st := attempt(ss, func() store.Status {
			return ss.RMW(&k, func(v *store.View, exists bool) (store.Write, bool) {
				saw = exists
				return store.Write{Value: append(bytes.Clone(v.Value), tail...), ExpireAt: v.ExpireAt, Kind: v.Kind}, !leave
			})
		})
		if !saw && there && s.forget {
			if leave {
				return nil
			}
			// Let it have what the others have.
			attempt(ss, func() store.Status {
				return ss.Put(&k, thing{append(bytes.Clone(old.value), tail...), old.expire, old.kind}.write(), nil)
			})
			delete(s.lost, fmt.Sprint(db, "/", key))
			return nil
		}
		if saw != there || !leave && st != store.OK {
			return fmt.Errorf("%s: saw it %v, it is there %v; %v", key, saw, there, st)
		}
		return nil
	})
	if !leave {
		m.dbs[db][key] = thing{append(bytes.Clone(old.value), tail...), old.expire, old.kind}
	}
}

// transact puts and deletes several keys at once, or gives up.
func (m *model) transact() {
	type change struct {
		db     int
		key    string
		v      thing
		delete bool
	}
	var changes []change
	seen := map[string]bool{}
	for range rapid.IntRange(1, 5).Draw(m.t, "keys") {
		db, key := m.draw()
		if id := fmt.Sprint(db, key); !seen[id] {
			seen[id] = true
			changes = append(changes, change{db, key, m.drawThing(), rapid.Bool().Draw(m.t, "delete")})
		}
	}
	abort := rapid.IntRange(0, 4).Draw(m.t, "abort") == 0
	var total int
	for _, c := range changes {
		total += min(len(c.v.value), 160) + 80
	}
	m.each("transact", func(s *subject, ss *store.Session, _ int) error {
		st := attempt(ss, func() store.Status {
			var keys []store.Key
			for _, c := range changes {
				keys = append(keys, ss.Key(c.db, []byte(c.key)))
			}
			if st := ss.Lock(keys); st != store.OK {
				return st
			}
			for i, c := range changes {
				if c.delete {
					ss.Delete(&keys[i], nil)
				} else {
					ss.Put(&keys[i], c.v.write(), nil)
				}
				v, st := ss.Get(&keys[i])
				if c.delete && st != store.NotFound || !c.delete && !bytes.Equal(v.Value, c.v.value) {
					m.t.Fatalf("%s: a transaction does not see what it wrote to %s: %v", s.name, c.key, st)
				}
			}
			if abort {
				ss.Abort()
				return store.OK
			}
			return ss.Commit()
		})
		if st != store.OK {
			return fmt.Errorf("%v %w", st, ss.Err())
		}
		if !abort {
			for _, c := range changes {
				delete(s.lost, fmt.Sprint(c.db, "/", c.key))
			}
		}
		return nil
	})
	if abort {
		return
	}
	for _, c := range changes {
		if c.delete {
			delete(m.dbs[c.db], c.key)
		} else {
			m.dbs[c.db][c.key] = c.v
		}
	}
}

// conditional puts with a view that is still true, or not any more.
func (m *model) conditional() {
	db, key := m.draw()
	v := m.drawThing()
	stale := rapid.Bool().Draw(m.t, "stale")
	m.each("conditional", func(s *subject, ss *store.Session, _ int) error {
		k := ss.Key(db, []byte(key))
		st := attempt(ss, func() store.Status {
			view, st := ss.Get(&k)
			if st == store.Cold {
				return st
			}
			if stale {
				if st := ss.Put(&k, v.write(), nil); st != store.OK {
					return st
				}
			}
			if st := ss.Put(&k, v.write(), &view); st != store.Conflict || stale {
				return st
			}
			return store.Cold // Another key of its stripe was deleted, or it moved: again.
		})
		delete(s.lost, fmt.Sprint(db, "/", key))
		if want := map[bool]store.Status{true: store.Conflict, false: store.OK}[stale]; st != want {
			return fmt.Errorf("%v, want %v", st, want)
		}
		return nil
	})
	m.dbs[db][key] = v
}

func (m *model) truncate() {
	db := rapid.IntRange(0, 2).Draw(m.t, "db")
	m.each("truncate", func(s *subject, _ *store.Session, _ int) error { return s.st.Truncate(db) })
	m.dbs[db] = map[string]thing{}
}

func (m *model) swap() {
	a, b := rapid.IntRange(0, 2).Draw(m.t, "a"), rapid.IntRange(0, 2).Draw(m.t, "b")
	m.each("swap", func(s *subject, _ *store.Session, _ int) error {
		lost := map[string]bool{}
		for id := range s.lost {
			var db int
			var key string
			fmt.Sscanf(id, "%d / %s", &db, &key)
			switch db {
			case a:
				db = b
			case b:
				db = a
			}
			lost[fmt.Sprint(db, "/", key)] = true
		}
		s.lost = lost
		return s.st.Swap(a, b)
	})
	m.dbs[a], m.dbs[b] = m.dbs[b], m.dbs[a]
}

func (m *model) pass() { m.clock.Add(rapid.Int64Range(1, 20).Draw(m.t, "milliseconds")) }

func (m *model) checkpoint() {
	m.each("checkpoint", func(s *subject, _ *store.Session, _ int) error {
		if s.dev == nil {
			return nil
		}
		return s.st.Checkpoint(context.Background())
	})
}

func (m *model) reopen() {
	m.each("reopen", func(s *subject, _ *store.Session, _ int) error {
		if s.lasts {
			s.close(m.t)
			s.open(m.t)
		}
		return nil
	})
}

// give gives results as if all places moved, and compares them with what the index has.
func (m *model) give() {
	m.each("give", func(s *subject, _ *store.Session, _ int) error {
		sameResults(m.t, s.name, s.st, allPlaces)
		return nil
	})
}

// check compares all keys, by scan and by get.
func (m *model) check() {
	for _, s := range m.all {
		for db := range m.dbs {
			present := 0
			for n := range 16 {
				key := fmt.Sprintf("key:%d", n)
				want, there := m.at(db, key)
				if there && !s.lost[fmt.Sprint(db, "/", key)] {
					present++
				}
				if err := s.look(s.ss[0], db, key, want, there); err != nil {
					m.t.Fatalf("%s: %v", s.name, err)
				}
			}
			if s.forget {
				continue
			}
			if seen := scanned(m.t, s.ss[1], db); len(seen) != present {
				m.t.Fatalf("%s: a scan of database %d shows %d keys, want %d", s.name, db, len(seen), present)
			}
		}
	}
}

func TestEveryKindOfStoreAnswersLikeAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := new(atomic.Int64)
		clock.Store(1_000_000)
		m := &model{t: t, clock: clock, all: subjects(clock)}
		for db := range m.dbs {
			m.dbs[db] = map[string]thing{}
		}
		for _, s := range m.all {
			s.open(t)
			defer func() {
				s.close(t)
				if s.dev != nil {
					s.dev.Close()
				}
			}()
		}
		steps := map[string]func(){
			"put": m.put, "put again": m.put, "get": m.get, "delete": m.delete, "modify": m.modify, "transact": m.transact,
			"conditional": m.conditional, "once": m.once, "once again": m.onceAgain, "truncate": m.truncate, "swap": m.swap, "pass": m.pass, "checkpoint": m.checkpoint, "reopen": m.reopen, "give": m.give,
		}
		actions := map[string]func(*rapid.T){"": func(*rapid.T) {}}
		for name, f := range steps {
			actions[name] = func(*rapid.T) { f() }
		}
		t.Repeat(actions)
		m.check()
	})
}
