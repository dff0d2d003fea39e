package store

import "github.com/ostrodb/ostro/engine/record"

// Ceiling gives a version that no record, tombstone or floor of this store has passed, nor
// will by what is removed where nobody writes any more. It is an upper bound, not the highest
// one: versions are above this wherever the records arrive.
//
// Nobody counts versions where they are made. But each is at most the highest before it and
// two more, one of which a deletion may have raised its stripe's floor by, and takes an entry
// of the log, or an update in place, which the sessions count when their round ends. So what
// the log has grown by since it was opened bounds by how much they have.
func (st *Store) Ceiling() uint64 {
	st.log.SealAll()
	grown := st.log.Appended() / (record.HeaderBytes / 2)
	return st.versions.Load() + grown + 2*uint64(st.writes()) + 2
}

// writes is how many writes sessions have counted in rounds that ended.
func (st *Store) writes() (n int64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	n = st.past.seen[2].Load()
	for ss := range st.open {
		n += ss.stat.seen[2].Load()
	}
	return n
}

// raiseCeiling notes that a version was found or imported.
func (st *Store) raiseCeiling(ver uint64) {
	for old := st.versions.Load(); old < ver; old = st.versions.Load() {
		if st.versions.CompareAndSwap(old, ver) {
			return
		}
	}
}
