package call

import (
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant/extension"
)

// What a commit ends with, beside success.
var (
	// errConflict is a call that has read what is no longer so.
	errConflict = errors.New("what it has read was changed meanwhile")
	// errCold is one for which the session has to fetch something first.
	errCold = errors.New("a key is not in memory")
	// errRepeated is one that was run before; its first response is there.
	errRepeated = errors.New("it was run before")
)

// ResponseBytes is the longest response of a call with an identity that writes: it is kept, to be given again.
const ResponseBytes = store.MaxResultBytes

var errResponse = fmt.Errorf("it writes, and its response is longer than the %d bytes that are kept of one: respond less, or call it without an identity", ResponseBytes)

// commit makes a call's changes one transaction on a session.
type commit struct {
	sess   *store.Session
	req    *Request
	ground Ground
	keys   []store.Key // those of writes, then of reads, then the record of the call
	view   store.View
	absent []store.Key
	named  []store.Key // of all that was read, if the session has looked that up already
	first  []byte      // the response of an earlier attempt; valid until the session's End
}

func (c *commit) begin(s *store.Session, r *Request, g Ground) {
	c.sess, c.req, c.ground, c.named, c.first = s, r, g, nil, nil
}

// run applies all or nothing.
func (c *commit) run(ch *extension.Changes) error {
	if c.req.Once && len(ch.Writes) > 0 && len(ch.Response) > ResponseBytes {
		return errResponse
	}
	if err := c.name(ch); err != nil {
		return err
	}
	if len(ch.Writes) == 0 && len(ch.Reads) > 0 {
		return c.glance(ch.Reads)
	}
	if err := c.room(ch.Writes); err != nil {
		return err
	}
	if c.single(ch) {
		return c.put(&c.keys[0], &ch.Writes[0], time.UnixMilli(c.sess.Now()))
	}
	if st := c.sess.Lock(c.keys); st != store.OK {
		return c.failure(st)
	}
	if err := c.write(ch); err != nil {
		c.sess.Abort()
		return err
	}
	if st := c.sess.Commit(); st != store.OK {
		return c.failure(st)
	}
	return nil
}

// single tells whether all that there is to do is one write that depends on nothing: that is atomic by itself.
func (c *commit) single(ch *extension.Changes) bool {
	return len(ch.Writes) == 1 && len(ch.Reads) == 0 && !c.req.Once && (c.ground == nil || c.ground.Standing(c.keys[0].Place) == Here)
}

// keep records the response of a call that wrote nothing, for an attempt of it that comes late must not write. One
// that is too long for that is not kept.
func (c *commit) keep(response []byte) error {
	if len(response) > ResponseBytes {
		return nil
	}
	return c.run(&extension.Changes{Response: response})
}

// room asks whether the tenant has some for what is not a deletion, and for the response if it is kept.
func (c *commit) room(writes []extension.Write) error {
	if c.req.Account == nil {
		return nil
	}
	for i := range writes {
		if !writes[i].Delete {
			return c.req.Account.Room()
		}
	}
	if c.req.Once {
		return c.req.Account.Keep()
	}
	return nil
}

// name finds the keys' places, which all must be served.
func (c *commit) name(ch *extension.Changes) error {
	c.keys = c.keys[:0]
	for i := range ch.Writes {
		if err := c.add(ch.Writes[i].Table, ch.Writes[i].Key); err != nil {
			return err
		}
	}
	if err := c.nameReads(ch.Reads); err != nil {
		return err
	}
	if c.req.Once {
		c.keys = append(c.keys, c.sess.OpKey(c.req.Object, c.req.ID))
	}
	return nil
}

func (c *commit) nameReads(reads []extension.Read) error {
	if len(c.named) == len(reads) {
		from := len(c.keys)
		c.keys = append(c.keys, c.named...)
		for i := range reads {
			c.keys[from+i].Bytes = reads[i].Key // What was looked up by is the guest's, and may be something else by now.
		}
		return nil
	}
	for i := range reads {
		if err := c.add(reads[i].Table, reads[i].Key); err != nil {
			return err
		}
	}
	return nil
}

func (c *commit) add(table uint32, key []byte) error {
	db, ok := c.req.Scope.table(table)
	if !ok {
		return fmt.Errorf("it writes to table %d, which it does not have", table)
	}
	n := len(c.keys)
	c.keys = append(c.keys, store.Key{})
	c.sess.Name(&c.keys[n], db, key)
	if c.ground == nil {
		return nil
	}
	if st := c.ground.Standing(c.keys[n].Place); st == Away || st == Coming {
		return errConflict // It runs again, and is told.
	}
	return nil
}

// write buffers the changes in the transaction that holds all keys, if what was read is still so.
func (c *commit) write(ch *extension.Changes) error {
	if c.req.Once {
		if st := c.sess.Read(c.record(), &c.view); st == store.OK {
			c.first = c.sess.Keep(c.view.Value)
			return errRepeated
		}
	}
	if err := c.compare(ch.Reads); err != nil {
		return err
	}
	now := time.UnixMilli(c.sess.Now())
	for i := range ch.Writes {
		if err := c.put(&c.keys[i], &ch.Writes[i], now); err != nil {
			return err
		}
	}
	if c.req.Once {
		if st := c.sess.Complete(c.record(), ch.Response); st != store.OK {
			return c.failure(st)
		}
	}
	return nil
}

// record is the key of what is kept of the call.
func (c *commit) record() *store.Key { return &c.keys[len(c.keys)-1] }

func (c *commit) put(k *store.Key, w *extension.Write, now time.Time) error {
	if c.ground != nil && c.ground.Standing(k.Place) == Leaving {
		if st := c.sess.Read(k, &c.view); st == store.NotFound {
			return ErrMoving
		}
	}
	if w.Delete {
		if st := c.sess.Delete(k, nil); st != store.OK && st != store.NotFound {
			return c.failure(st)
		}
		return nil
	}
	if st := c.sess.Put(k, store.Write{Value: w.Value, ExpireAt: expireAt(w.TTL, now)}, nil); st != store.OK {
		return c.failure(st)
	}
	return nil
}

// glance finds out whether all that was read by a call that wrote nothing was there at one moment. A record that has its
// version still has had it all the time; so has one key that is absent again, when it is looked at. Several that are may
// have come and gone in turns: they are held while all are looked at.
func (c *commit) glance(reads []extension.Read) error {
	n, absent := len(c.keys)-len(reads)-c.records(), c.absent[:0]
	for i := range reads {
		if reads[i].Version == 0 {
			absent = append(absent, c.keys[n+i])
		}
	}
	c.absent = absent
	switch {
	case len(absent) < 2:
		return c.compare(reads)
	case len(absent) > absentMost:
		return errAbsent
	}
	if st := c.sess.Lock(absent); st != store.OK {
		return c.failure(st)
	}
	defer c.sess.Abort()
	return c.compare(reads)
}

// absentMost is how many keys may be held to find that all of them were absent at one moment: who uses one of them waits, on a
// loop.
const absentMost = 2048

var errAbsent = fmt.Errorf("it found more than %d keys absent, and no moment can be told at which all of them were: read fewer in a call", absentMost)

// records is how many keys stand behind those of reads.
func (c *commit) records() int {
	if c.req.Once {
		return 1
	}
	return 0
}

// compare finds out whether all that was read is still so. Reads' keys stand behind those of writes, of which
// there are as many as there are keys in front.
func (c *commit) compare(reads []extension.Read) error {
	n := len(c.keys) - len(reads) - c.records()
	for i := range reads {
		version, st := c.sess.Version(&c.keys[n+i])
		switch {
		case st == store.NotFound:
			version = 0
		case st != store.OK:
			return c.failure(st)
		}
		if version != reads[i].Version {
			return errConflict
		}
	}
	return nil
}

// StoreError is a commit that the store did not take.
type StoreError struct {
	Status store.Status
	Err    error
}

func (e *StoreError) Error() string { return e.Err.Error() }
func (e *StoreError) Unwrap() error { return e.Err }

func (c *commit) failure(st store.Status) error {
	switch st {
	case store.Cold:
		return errCold
	case store.Conflict:
		return errConflict
	}
	err := c.sess.Err()
	if err == nil {
		err = fmt.Errorf("the store did not take it (%s): try again", st)
	}
	return &StoreError{st, err}
}
