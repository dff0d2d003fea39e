package call

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/sched"
)

// far is the data of a call that the scheduler runs. It borrows a session for each use and may wait between
// two. What it writes is kept for the worker that answers.
type far struct {
	host   *Host
	req    *Request
	turn   *sched.Turn
	ticket store.Ticket // what was read must be durable before it is told
	err    error        // why it could not go on

	names   []byte
	changes extension.Changes
	wrote   bool // there is something to commit

	view  store.View
	sight store.Sight // of no use once the session is given back
	page  page
	due   time.Time
}

// ErrMoving is a call of which a key is on its way from or to another node.
var ErrMoving = errors.New("a key is on its way between nodes, or still being recovered: try again")

// errStrayed is a call that has met a key of its own at another node: it left while the call ran. It is run
// again, where its door finds the key, even if the key has come back meanwhile.
var errStrayed = fmt.Errorf("its key left while it ran: %w", ErrMoving)

// elsewhere is what a function gets for a key of another node. Its own were here when it began.
func (f *far) elsewhere(db int, key []byte) extension.Status {
	own := func(k []byte) bool { return bytes.Equal(k, key) }
	if db == f.req.Scope.Table && slices.ContainsFunc(f.req.Keys, own) {
		f.err = errStrayed
		return extension.Later
	}
	return extension.Elsewhere
}

// use runs f on a borrowed session until it needs not wait any more. It returns false if that cannot be.
func (f *far) use(what func(s *store.Session, g Ground) (store.Status, bool)) bool {
	var fetch *store.Fetch
	for {
		st, coming, next, err := f.once(fetch, what)
		if fetch != nil {
			fetch.Release()
		}
		fetch = next
		switch {
		case err != nil:
			f.err = err
			return false
		case coming:
			if !f.await() {
				return false
			}
		case st == store.Cold:
			if !f.fetch(fetch) {
				return false
			}
		default:
			return true
		}
	}
}

// once is one try: on one session, in one round.
func (f *far) once(fetch *store.Fetch, what func(s *store.Session, g Ground) (store.Status, bool)) (st store.Status, coming bool, next *store.Fetch, err error) {
	s, err := f.host.borrow()
	if err != nil {
		return st, false, nil, err
	}
	defer f.host.giveBack(s)
	if fetch != nil {
		s.Resume(fetch)
	}
	s.Begin()
	st, coming = what(s, f.req.ground())
	switch {
	case coming:
	case st == store.Cold:
		next = s.TakeFetch()
	case st > store.Conflict:
		err = s.Err()
	}
	f.ticket = f.ticket.Or(s.Needs())
	s.End()
	return st, coming, next, err
}

// fetch waits for what is not in memory.
func (f *far) fetch(w *store.Fetch) bool {
	f.turn.Wait(func() {
		done := make(chan struct{})
		w.Patience(f.host.opts.WaitLimit)
		w.Start(func() { close(done) })
		<-done
	})
	switch f.err = w.Err(); {
	case store.Unsettled(f.err):
		f.err = ErrMoving
	case f.err == nil && f.host.closing.Load():
		f.err = store.ErrClosed
	}
	return f.err == nil
}

// comingMillis is how often a call looks again at a place that is coming.
const comingMillis = 5

// await waits for a place to come.
func (f *far) await() bool {
	now := time.Now()
	if f.due.IsZero() {
		f.due = now.Add(f.host.opts.WaitLimit)
	}
	if now.After(f.due) || f.host.closing.Load() {
		f.err = ErrMoving
		return false
	}
	f.turn.Wait(func() { time.Sleep(comingMillis * time.Millisecond) })
	return true
}

// Get reads a value, which does not depend on the session any more.
func (f *far) Get(table uint32, key, buf []byte, v *extension.Value) (st extension.Status) {
	db, ok := f.req.Scope.table(table)
	if !ok {
		return extension.NoSuchTable
	}
	used := f.use(func(s *store.Session, g Ground) (store.Status, bool) {
		k := s.Key(db, key)
		standing := Here
		if g != nil {
			standing = g.Standing(k.Place)
		}
		switch standing {
		case Away:
			st = f.elsewhere(db, key)
			return store.OK, false
		case Coming:
			return store.OK, true
		}
		size, got := s.ReadInto(&k, &f.view, &f.sight, buf)
		switch {
		case got == store.NotFound && standing == Leaving:
			st = f.elsewhere(db, key)
		case got == store.NotFound:
			st = extension.Absent
		case got == store.OK:
			v.Len, v.Version = size, f.view.Version
			if size > len(buf) && v.Room(size) {
				v.Whole = bytes.Clone(f.view.Value)
			}
			st = extension.OK
		}
		return got, false
	})
	if used && st == extension.OK && f.view.Kind != record.KindString {
		f.err, used = errForeign, false
	}
	if !used {
		return extension.Later
	}
	return st
}

// Place tells whether a key may be written here, as far as that is known before the commit.
func (f *far) Place(table uint32, key []byte) extension.Status {
	db, ok := f.req.Scope.table(table)
	if !ok {
		return extension.NoSuchTable
	}
	g := f.req.ground()
	if g == nil {
		return extension.OK
	}
	s, err := f.host.borrow()
	if err != nil {
		f.err = err
		return extension.Later
	}
	k := s.Key(db, key)
	f.host.giveBack(s)
	if g.Standing(k.Place) == Away {
		return f.elsewhere(db, key)
	}
	return extension.OK
}

// Scan shows what the tenant's table has on this node.
func (f *far) Scan(table uint32, cursor uint64, prefix []byte, visit func(key, value []byte) bool) (next uint64, looked int, _ extension.Status) {
	db, ok := f.req.Scope.table(table)
	if !ok {
		return 0, 0, extension.NoSuchTable
	}
	used := f.use(func(s *store.Session, g Ground) (got store.Status, coming bool) {
		next, got = f.page.show(s, g, db, cursor, prefix, visit)
		looked += f.page.looked
		return got, false
	})
	if !used {
		return 0, looked, extension.Later
	}
	return next, looked, extension.OK
}

// Commit keeps the changes for the worker. If there are none, all that remains is to find out whether what was read was there
// at one moment, which may be many keys: no loop has to wait for that.
func (f *far) Commit(c *extension.Changes) error {
	if len(c.Writes) == 0 {
		return f.glance(c)
	}
	f.wrote = true
	f.changes.Writes = append(f.changes.Writes[:0], c.Writes...)
	f.changes.Reads = f.changes.Reads[:0]
	f.names = f.names[:0]
	for _, r := range c.Reads {
		at := len(f.names)
		f.names = append(f.names, r.Key...)
		r.Key = f.names[at:len(f.names):len(f.names)]
		f.changes.Reads = append(f.changes.Reads, r)
	}
	return nil
}

// glance looks again at what was read. It may lock keys, so it does that at usual priority.
func (f *far) glance(c *extension.Changes) (err error) {
	var m commit
	used := f.use(func(s *store.Session, g Ground) (st store.Status, coming bool) {
		f.turn.Aloud(func() {
			m.begin(s, f.req, g)
			err = m.run(c)
		})
		if errors.Is(err, errCold) {
			return store.Cold, false
		}
		return store.OK, false
	})
	if !used {
		return f.err
	}
	return err
}
