package store

import (
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

// Key names a record: a table, the key's bytes, and the place they hash to.
type Key struct {
	Place record.Place
	Table record.TableID
	Bytes []byte
	in    *table
}

// Key computes a key's place once, for all operations on it. It keeps the slice.
func (ss *Session) Key(db int, key []byte) (k Key) {
	ss.Name(&k, db, key)
	return k
}

// Name is Key in a place of the caller's. A struct that is copied right after
// it was written makes the processor wait until everything before it is done,
// cache misses of other operations included: hot loops fill keys and views
// where they stay.
func (ss *Session) Name(k *Key, db int, key []byte) {
	t := ss.tables.of(db)
	k.Place, k.Table, k.Bytes, k.in = record.PlaceOf(t.id, key), t.id, key, t
}

// Names tells whether a key that has a name still is what that database calls it: the table may be another one by now.
func (ss *Session) Names(k *Key, db int) bool {
	t := ss.tables.of(db)
	return k.in == t && k.Table == t.id
}

// View is a record as it was read. It is valid until the session's End. The
// view of an absent key says so to conditional writes.
type View struct {
	Value    []byte
	Version  uint64
	ExpireAt int64 // Unix milliseconds; 0 is never
	Kind     record.Kind

	live  bool           // present and not expired
	leans bool           // see Leans; set by Read and GetBatch
	at    record.Address // of the entry, 0 if there was none
	floor uint64         // of the stripe, when there was no entry
}

// Exists tells whether the view is of a present key.
func (v *View) Exists() bool { return v.live }

// Leans tells, of what Read and GetBatch have seen, whether it may not be durable yet. Who is told of nothing else in a round need not
// wait for the round's ticket.
func (v *View) Leans() bool { return v.leans }

// Write is a record to be.
type Write struct {
	Value    []byte
	ExpireAt int64
	Kind     record.Kind
}

// floorStripes is how finely version floors are kept.
const floorStripes = 4096

// floors hold, per stripe of the placement space, a version that no deleted
// key of the stripe ever reached. New keys start above it, so a key's versions
// grow over deletions, and a watcher of an absent key sees that it was there
// in between.
type floors [floorStripes]atomic.Uint64

func (f *floors) of(p record.Place) *atomic.Uint64 { return &f[uint64(p)%floorStripes] }

// raiseAll lifts all floors to at least v.
func (f *floors) raiseAll(v uint64) {
	for p := range record.Place(floorStripes) {
		f.raise(p, v)
	}
}

// raise lifts the floor under p to at least v.
func (f *floors) raise(p record.Place, v uint64) {
	at := f.of(p)
	for old := at.Load(); old < v; old = at.Load() {
		if at.CompareAndSwap(old, v) {
			return
		}
	}
}
