package store

import (
	"encoding/binary"
	"runtime"
	"time"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// A cache forgets: the oldest segment goes with all its records. Before that it
// is marked as aging for a while, and records that are read meanwhile move to a
// head: so those that are used stay. A key that
// was forgotten is absent from then on, also after a restart. So where other
// segments may hold older records of it, a tombstone stays behind.

// turn is how far forgetting has come through memory. Results of operations may not be forgotten before their time: they
// are written again. A cache that is full of those could make room for ever, and take it again for what it kept.
//
// It is the maintenance's.
type turn struct {
	passed int64     // bytes, since it began
	given  int64     // segments that had been given to anybody then
	futile time.Time // when one ended that gave none
}

// futileRest is how long memory counts as full then.
const futileRest = time.Second

// pass notes that so many bytes were passed. A turn ends with all that there are.
func (t *turn) pass(bytes, all, given int64) {
	if t.passed += bytes; t.passed < all {
		return
	}
	if given == t.given {
		t.futile = time.Now()
	}
	t.passed, t.given = 0, given
}

// forgetOldest drops the oldest segment in memory with all its records.
func (st *Store) forgetOldest() bool {
	if time.Since(st.turn.futile) < futileRest {
		return false
	}
	for _, s := range st.log.Segments() {
		if !st.log.AtRest(s) || !st.log.InMemory(s) {
			continue
		}
		bytes := int64(s.End())
		if err := st.forget(s); err != nil {
			st.complain("eviction failed", err, s)
			return false
		}
		st.turn.pass(bytes, st.log.Resident()*int64(st.opts.SegmentBytes), st.room.given.Load())
		st.age()
		return true
	}
	return false
}

// forget drops a segment with all its records.
func (st *Store) forget(s *hlog.Segment) error {
	st.cleaning.Lock()
	defer st.cleaning.Unlock()
	st.freeze(s)
	c := cleaning{st: st, ss: st.keeper, seg: s, forget: true}
	if err := c.relocateAll(runtime.Gosched); err != nil {
		return err
	}
	if st.opts.Replicator != nil {
		st.condemnAll([]cleaning{c})
		return nil
	}
	return st.drop([]cleaning{c})
}

// age marks the next segments to be forgotten, a quarter of those in memory,
// once memory is getting used up.
func (st *Store) age() {
	if Policy(st.policy.Load()) != Evict || st.log.Resident() < st.maxResident()/2 {
		return
	}
	left := st.log.Resident() / 4
	for _, s := range st.log.Segments() {
		if left <= 0 {
			return
		}
		if s.Closed() && st.log.InMemory(s) {
			st.freeze(s)
			st.log.Age(s)
			left--
		}
	}
}

// forgetRecord drops a live record; not done asks for another look.
func (c *cleaning) forgetRecord(place record.Place, p record.Ptr, pr *index.Probe) (done bool, err error) {
	if p.Table() == chunkTable {
		return c.forgetChunk(p, pr)
	}
	t := c.st.tables.byID(p.Table())
	if t == nil {
		return c.st.ix.Remove(pr), nil
	}
	ver := versionOf(p)
	k := Key{Place: place, Table: p.Table(), Bytes: p.Key(), in: t}
	as := c.st.following(&k, ver)
	c.st.floors.raise(place, as)
	c.st.noteRemoval(&k, ver, as)
	switch st := c.forgetKey(&k, pr, as); st {
	case Conflict:
		return false, nil
	case OK:
	default:
		return false, c.ss.Err()
	}
	if p.Chunked() {
		c.ss.dropChunks(place, p.Value())
	}
	t.count(c.ss.n, worth{}.minus(worthOf(p)))
	c.st.work.evicted.Add(1)
	return true, nil
}

// forgetKey takes a key out of the index. Older records of it lie below the
// horizon of the segment that is forgotten.
func (c *cleaning) forgetKey(k *Key, pr *index.Probe, ver uint64) Status {
	if !c.st.replayed() || c.oldest >= c.seg.Horizon() {
		if !c.st.ix.Remove(pr) {
			return Conflict
		}
		return OK
	}
	var h horizon
	e := tombstone(c.st, k.Table, ver, &h)
	binary.LittleEndian.PutUint64(h[:], uint64(c.seg.Horizon()))
	return c.ss.publish(k, &e, func(record.Address) bool { return c.st.ix.Remove(pr) })
}

// forgetChunk drops the record that a chunk belongs to: without all its chunks
// it is of no use.
func (c *cleaning) forgetChunk(p record.Ptr, pr *index.Probe) (done bool, err error) {
	key, t, _, _ := chunkBody(p.Value())
	k := Key{Place: record.PlaceOf(t, key), Table: t, Bytes: key, in: c.st.tables.byID(t)}
	if k.in == nil {
		return c.st.ix.Remove(pr), nil
	}
	var at index.Probe
	parent, st := c.ss.find(&k, &at)
	for st == Cold { // A restart leaves on disk what does not fit into memory.
		c.ss.fetchNow(nil)
		parent, st = c.ss.find(&k, &at)
	}
	if st != OK {
		return c.st.ix.Remove(pr), nil
	}
	switch c.ss.remove(&k, &at, parent, versionOf(parent)) { // Its chunks go with it.
	case OK:
		c.st.work.evicted.Add(1)
		return true, nil
	case Conflict:
		return false, nil
	default:
		return false, c.ss.Err()
	}
}
