package index

import (
	"math/bits"
	"unsafe"

	"github.com/ostrodb/ostro/engine/epoch"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/prefetch"
)

// Options of an index.
type Options struct {
	// Entries is how many entries to make room for at once. The index grows by
	// itself; this saves the splits on the way.
	Entries int
	// LimitBytes is the most memory that the index takes. 0: what the system gives.
	LimitBytes int64
	// Epoch is the table whose guards the callers hold. Nil: a table of its own.
	Epoch *epoch.Table
}

// Index is a hash index that may be shared by any number of goroutines, each
// inside a guard of the epoch table.
type Index struct {
	dir    directory
	epoch  *epoch.Table
	arena  *arena
	counts counters
}

// startEntries is the load of a sub-table that Options.Entries aims at: one in
// ten buckets has an overflow bucket then, and the first split is still far.
const startEntries = 4000

// New returns an empty index.
func New(o Options) (*Index, error) {
	ix := &Index{epoch: o.Epoch, arena: newArena()}
	ix.arena.limit = o.LimitBytes
	if ix.epoch == nil {
		ix.epoch = epoch.New(64)
	}
	depth := bits.Len(uint(max(o.Entries-1, 0) / startEntries))
	if err := ix.start(min(depth, levelBits)); err != nil {
		ix.Close()
		return nil, err
	}
	return ix, nil
}

// start makes the first sub-tables: 1<<depth of them.
func (ix *Index) start(depth int) error {
	width := max(depth, 1) // A directory has at least one bit, for shifts by 64 are slow.
	at, err := ix.arena.words(width)
	if err != nil {
		return err
	}
	dir := uint64(at) | uint64(width)
	for i := range uint64(1) << depth {
		t, err := ix.arena.table(overflowBuckets)
		if err != nil {
			return err
		}
		t.describe(uint32(i<<(32-depth)), uint32(depth))
		t.publish()
		for j := range uint64(1) << (width - depth) {
			*entryAt(dir, i<<(width-depth)+j) = uint64(t)
		}
	}
	ix.dir.root = dir
	return nil
}

// Close gives the memory back. Nobody may use the index any more.
func (ix *Index) Close() { ix.arena.close() }

// Epoch returns the table whose guards protect the index.
func (ix *Index) Epoch() *epoch.Table { return ix.epoch }

// Bytes returns the memory that the index holds.
func (ix *Index) Bytes() int64 { return ix.arena.bytes.Load() }

// Len returns the number of entries, placeholders included. While entries come
// and go it is about right.
func (ix *Index) Len() int64 { return ix.counts.entries() }

// Seek looks up the bucket of p. The candidates follow by Next.
func (ix *Index) Seek(p record.Place, pr *Probe) {
	pr.place = p
	ix.locate(pr)
	ix.Start(pr)
}

// SeekPrefetch is the first half of Seek: it asks for the bucket's cache line
// and does not wait for it. Start is the second half. Between them lie the
// SeekPrefetch of other places, so that their misses overlap.
func (ix *Index) SeekPrefetch(p record.Place, pr *Probe) {
	pr.place = p
	ix.locate(pr)
	prefetch.T0(unsafe.Add(unsafe.Pointer(nil), uintptr(pr.primary)))
}

// SeekNear is SeekPrefetch of a place that probably lies near another one: in the bucket that its probe was located in, inside this guard, or
// at least in its sub-table.
func (ix *Index) SeekNear(p record.Place, pr, near *Probe) {
	if !near.table.covers(p) {
		ix.SeekPrefetch(p, pr)
		return
	}
	pr.place, pr.table, pr.primary = p, near.table, near.table.primary(p)
	if pr.primary != near.primary {
		prefetch.T0(unsafe.Add(unsafe.Pointer(nil), uintptr(pr.primary)))
	}
}

// Start begins the search in a bucket that SeekPrefetch has located, as of now:
// if the sub-table was replaced meanwhile, it takes the new one. To use a probe
// again, Start it again.
func (ix *Index) Start(pr *Probe) {
	pr.meta = pr.primary.loadMeta()
	if pr.meta&metaLocked != 0 {
		ix.relocate(pr)
	}
	pr.open(pr.primary)
}

// StartWith is Start for a probe that SeekPrefetch has located in the bucket that another one was started in: as of then. So several can
// be inserted together, see Hold. False: it is another bucket.
func (ix *Index) StartWith(pr, o *Probe) bool {
	if pr.primary != o.primary {
		return false
	}
	pr.table, pr.meta = o.table, o.meta
	pr.open(pr.primary)
	return true
}

// relocate is for a bucket found locked: by an insertion, or by a split that may
// have replaced the sub-table. The directory knows.
func (ix *Index) relocate(pr *Probe) {
	ix.locate(pr)
	pr.meta = pr.primary.loadMeta()
}

func (ix *Index) locate(pr *Probe) {
	pr.table = ix.dir.find(pr.place)
	pr.primary = pr.table.primary(pr.place)
}
