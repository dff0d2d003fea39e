package call

import (
	"bytes"
	"time"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant/extension"
)

// near is the data of a call that runs in a worker's own round. Nothing of it waits: what cannot be
// had at once ends the call with extension.Later, and missing says what it was.
type near struct {
	sess    *store.Session
	req     *Request
	ground  Ground
	missing missing
	commit  commit

	keys   []store.Key   // what was read, in its order: those of extension.Changes
	sights []store.Sight // and where it was; as many
	ahead  ahead
	view   store.View
	page   page
}

// begin forgets what an earlier call has done.
func (n *near) begin() { n.missing, n.keys, n.ahead = nothing, n.keys[:0], ahead{} }

// missing is why a trial could not go on.
type missing uint8

const (
	nothing missing = iota
	cold            // the session knows what to fetch
	coming          // the place is not served yet
	fault           // session.Err says
	foreign         // the key holds what functions cannot read
)

// look names a key and tells whether it may be used here; OK if it may.
func (n *near) look(k *store.Key, table uint32, key []byte) extension.Status {
	db, ok := n.req.Scope.table(table)
	if !ok {
		return extension.NoSuchTable
	}
	if own := n.req.Named; own != nil && table == 0 && bytes.Equal(own.Bytes, key) {
		*k = *own
	} else {
		n.sess.Name(k, db, key)
	}
	return n.standing(k)
}

// standing tells whether a key that has a name may be used here.
func (n *near) standing(k *store.Key) extension.Status {
	if n.ground == nil {
		return extension.OK
	}
	switch n.ground.Standing(k.Place) {
	case Away:
		return extension.Elsewhere
	case Coming:
		n.missing = coming
		return extension.Later
	}
	return extension.OK
}

// next is room for the next key that is read. It counts once kept.
func (n *near) next() (*store.Key, *store.Sight) {
	at := len(n.keys)
	if at == len(n.sights) {
		n.keys, n.sights = append(n.keys, store.Key{})[:at], append(n.sights, store.Sight{})
	}
	return &n.keys[:at+1][at], &n.sights[at]
}

// keep counts the key that next gave.
func (n *near) keep() { n.keys = n.keys[:len(n.keys)+1] }

// Get reads straight into the guest's buffer. What does not fit stays where it is: the session's round, in which
// the call ends, keeps it as it is.
func (n *near) Get(table uint32, key, buf []byte, v *extension.Value) extension.Status {
	k, s := n.next()
	if n.ahead.expected(table, key, k, len(n.keys)) {
		n.ahead.at++
		if st := n.standing(k); st != extension.OK {
			return st
		}
	} else {
		s.Forget()
		if st := n.look(k, table, key); st != extension.OK {
			return st
		}
	}
	size, st := n.sess.ReadExpected(k, &n.view, s, buf)
	switch {
	case st == store.NotFound:
		return n.absent(k)
	case st != store.OK:
		n.lacks(st)
		return extension.Later
	case n.view.Kind != record.KindString:
		n.missing = foreign
		return extension.Later
	}
	n.keep()
	v.Len, v.Version, v.Whole = size, n.view.Version, n.view.Value
	return extension.OK
}

// Prompt reads what is easily read.
func (n *near) Prompt(key, buf []byte, v *extension.Value) bool {
	k, s := n.next()
	if own := n.req.Named; own != nil && bytes.Equal(own.Bytes, key) {
		*k = *own
	} else {
		n.sess.Name(k, n.req.Scope.Table, key)
	}
	if n.ground != nil && n.ground.Standing(k.Place) != Here {
		return false
	}
	size, ok := n.sess.Glimpse(k, &n.view, s, buf)
	if !ok || n.view.Kind != record.KindString {
		return false
	}
	n.keep()
	v.Len, v.Version, v.Whole = size, n.view.Version, nil
	return true
}

// Place tells whether a key may be written here.
func (n *near) Place(table uint32, key []byte) extension.Status {
	var k store.Key
	return n.look(&k, table, key)
}

// absent tells what it means that the key is not there: where keys are leaving it may be at the other node.
func (n *near) absent(k *store.Key) extension.Status {
	if n.ground != nil && n.ground.Standing(k.Place) == Leaving {
		return extension.Elsewhere
	}
	n.keep()
	return extension.Absent
}

// lacks notes what a status of the store means for the trial.
func (n *near) lacks(st store.Status) {
	if n.missing = fault; st == store.Cold {
		n.missing = cold
	}
}

// Scan shows what the tenant's table has on this node.
func (n *near) Scan(table uint32, cursor uint64, prefix []byte, visit func(key, value []byte) bool) (next uint64, looked int, _ extension.Status) {
	db, ok := n.req.Scope.table(table)
	if !ok {
		return 0, 0, extension.NoSuchTable
	}
	next, st := n.page.show(n.sess, n.ground, db, cursor, prefix, visit)
	if st != store.OK {
		n.lacks(st)
		return 0, n.page.looked, extension.Later
	}
	return next, n.page.looked, extension.OK
}

// Commit applies the changes at once.
func (n *near) Commit(c *extension.Changes) error {
	if len(c.Writes) == 0 && n.undisturbed() {
		return nil
	}
	n.commit.begin(n.sess, n.req, n.ground)
	n.commit.named = n.keys
	return n.commit.run(c)
}

// undisturbed tells that what was read first was still there when the last was read, which so was there at the same
// moment. False if it is not that easily told.
func (n *near) undisturbed() bool {
	for i := range len(n.keys) - 1 {
		if !n.sights[i].Same() {
			return false
		}
	}
	return true
}

// expireAt is when a record expires that a function gave a time to live.
func expireAt(ttl time.Duration, now time.Time) int64 {
	if ttl == 0 {
		return 0
	}
	return now.Add(ttl).UnixMilli()
}
