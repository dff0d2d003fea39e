package store

import (
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// ReadInto is Read of a value that goes straight to dst, if it fits; then the view has none. Of one that
// does not, the view's value is the bytes, as with Read. n is how long it is. s is where it was.
func (ss *Session) ReadInto(k *Key, v *View, s *Sight, dst []byte) (n int, st Status) {
	if n, ok := ss.look(k, v, s, dst); ok {
		return n, OK
	}
	s.Forget()
	if *v, st = ss.get(k); st != OK {
		return 0, st
	}
	return v.into(dst), OK
}

// ReadExpected is ReadInto of a key that Expect may have been told of in this round, with the sight that it made then; or
// with one that was forgotten.
func (ss *Session) ReadExpected(k *Key, v *View, s *Sight, dst []byte) (n int, st Status) {
	if a := s.word.Address(); a != 0 && !ss.tx.open {
		if n, ok := ss.glanceInto(k, a, v, s, dst); ok {
			return n, OK
		}
	}
	return ss.ReadInto(k, v, s, dst)
}

// Glimpse is ReadInto of a value that fits and is where nearly every one is. False says nothing about the key.
func (ss *Session) Glimpse(k *Key, v *View, s *Sight, dst []byte) (n int, ok bool) {
	n, ok = ss.look(k, v, s, dst)
	return n, ok && n <= len(dst)
}

// look reads the first candidate of the bucket, if it is the right one.
func (ss *Session) look(k *Key, v *View, s *Sight, dst []byte) (n int, ok bool) {
	if ss.tx.open {
		return 0, false
	}
	a := ss.ix.FirstWord(k.Place, &s.word)
	if a == 0 {
		return 0, false
	}
	return ss.glanceInto(k, a, v, s, dst)
}

// Sight is where a read has found a record in the round. What was found by a longer search is not there.
type Sight struct {
	word    index.Word
	entry   record.Ptr
	version uint64 // as it stood there
}

// Same tells that a read would find the same, now. If not, or if that is not known, the key has to be looked up.
func (s *Sight) Same() bool { return s.word.Same() && s.entry.Version() == s.version }

// Forget makes it that of no record.
func (s *Sight) Forget() { s.word.Forget() }

// into moves a value to dst, if it fits.
func (v *View) into(dst []byte) int {
	n := len(v.Value)
	if n <= len(dst) {
		copy(dst, v.Value)
		v.Value = nil
	}
	return n
}

// glanceInto is glance for ReadInto.
func (ss *Session) glanceInto(k *Key, a record.Address, v *View, s *Sight, dst []byte) (n int, ok bool) {
	at := ss.log.See(a)
	p := at.Entry()
	if p.IsNil() || !p.PlainKeyIs(k.Table, k.Bytes) {
		return 0, false
	}
	s.entry, s.version = p, p.Version()
	if !at.Constant() {
		s.version &^= record.VersionLock // While it is locked, it is not the same.
	}
	if !at.Constant() || len(p.PlainValue()) > len(dst) {
		// What may change while it is copied goes elsewhere first: it may be gone then, and dst is as it was.
		if !ss.glance(k, a, v) {
			return 0, false
		}
		return v.into(dst), true
	}
	if !at.Stable() {
		ss.note(a)
	}
	n = copy(dst, p.PlainValue())
	v.Value, v.Version, v.ExpireAt, v.Kind, v.live = nil, p.Version()&^record.VersionLock, 0, p.Kind(), true
	v.at, v.floor = a, 0
	ss.stat.reads++
	ss.stat.hits++
	return n, true
}

// Await makes the round need what a ticket of another session stands for.
func (ss *Session) Await(t Ticket) { ss.need = max(ss.need, t.batch) }

// Or is a ticket that stands for both.
func (t Ticket) Or(o Ticket) Ticket { return Ticket{max(t.batch, o.batch)} }

// Keep copies bytes to where they are valid until End.
func (ss *Session) Keep(b []byte) []byte { return ss.arena.keep(b) }

// Now is the round's time, in Unix milliseconds.
func (ss *Session) Now() int64 { return ss.now }

// Needs is the ticket of a round that wrote nothing: it stands for what the round has read.
func (ss *Session) Needs() Ticket { return ss.ticket(0) }
