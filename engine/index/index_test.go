package index

import (
	"testing"

	"github.com/ostrodb/ostro/engine/epoch"
	"github.com/ostrodb/ostro/engine/record"
)

// fixture is an index with one guard that is inside.
type fixture struct {
	*Index
	guard *epoch.Guard
}

func open(t testing.TB, o Options) fixture {
	t.Helper()
	if o.Epoch == nil {
		o.Epoch = epoch.New(64)
	}
	ix, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{ix, enter(t, ix)}
	t.Cleanup(func() { f.close(t) })
	return f
}

// close checks that nothing is left behind.
func (f fixture) close(t testing.TB) {
	f.guard.Unregister()
	f.Epoch().Drain()
	if n := f.Epoch().Pending(); n != 0 {
		t.Errorf("%d actions never ran", n)
	}
	f.Close()
	if b := f.Bytes(); b != 0 {
		t.Errorf("%d bytes still mapped after Close", b)
	}
}

// enter returns a guard that is inside.
func enter(t testing.TB, ix *Index) *epoch.Guard {
	t.Helper()
	g, err := ix.Epoch().Register()
	if err != nil {
		t.Fatal(err)
	}
	g.Enter()
	return g
}

// In these tests the key is a number, its place a function of it, and a record's
// address is the key and a counter: what a log would hold can be computed.
const versionBits = 12

func addressFor(key, version uint64) record.Address {
	return record.Address((key+1)<<versionBits|version%(1<<versionBits-1)+1) << 3
}

func keyAt(a record.Address) uint64     { return uint64(a)>>(3+versionBits) - 1 }
func versionAt(a record.Address) uint64 { return uint64(a)>>3&(1<<versionBits-1) - 1 }

func placeFor(key uint64) record.Place { return record.Place(mix(key)) }

// get returns the address of a key.
func (ix *Index) get(p record.Place, key uint64) (record.Address, bool) {
	var pr Probe
	if !ix.find(&pr, p, key) {
		return 0, false
	}
	return pr.Address(), true
}

// find stands pr at a key's entry, or has it ready to insert.
func (ix *Index) find(pr *Probe, p record.Place, key uint64) bool {
	ix.Seek(p, pr)
	for pr.Next() {
		if pr.Address() != 0 && keyAt(pr.Address()) == key {
			return true
		}
	}
	return false
}

// put sets a key's address and tells whether it inserted.
func (ix *Index) put(p record.Place, key uint64, a record.Address) bool {
	var pr Probe
	for {
		if ix.find(&pr, p, key) {
			if ix.Update(&pr, a) {
				return false
			}
			continue
		}
		if ix.Insert(&pr, a) == Inserted {
			return true
		}
	}
}

func (ix *Index) remove(p record.Place, key uint64) bool {
	var pr Probe
	for ix.find(&pr, p, key) {
		if ix.Remove(&pr) {
			return true
		}
	}
	return false
}

func TestEveryKeyIsFoundWhileTheIndexGrows(t *testing.T) {
	ix := open(t, Options{})
	n := size(300_000)
	for key := range n {
		if !ix.put(placeFor(key), key, addressFor(key, 0)) {
			t.Fatalf("key %d was there before it was inserted", key)
		}
		if key%64 == 0 {
			ix.guard.Refresh()
		}
	}
	for key := range n {
		if a, ok := ix.get(placeFor(key), key); !ok || a != addressFor(key, 0) {
			t.Fatalf("key %d: address %v, found %v", key, a, ok)
		}
	}
	if got := ix.Len(); got != int64(n) {
		t.Fatalf("Len is %d, want %d", got, n)
	}
}

// Whoever knows the hash can choose keys whose places begin alike, so that one sub-table after the other is split for a half
// that stays empty. That ends where the index knows no more bits, and takes little by then.
func TestPlacesThatBeginAlikeTakeLittleMemory(t *testing.T) {
	f := open(t, Options{})
	before, most := f.Bytes(), int64(16<<20)
	const prefix, n = uint64(0xabcd1234), 50_000 // as many as 50 to a bucket
	for i := range uint64(n) {
		for got := Retry; got != Inserted; { // It grows, and is to be tried again.
			var pr Probe
			f.Seek(record.Place(prefix<<32|i), &pr)
			for pr.Next() {
			}
			if got = f.Insert(&pr, addressFor(i, 0)); got == Full {
				t.Fatalf("no room for entry %d", i)
			}
		}
	}
	m := f.Metrics()
	if m.Entries != n || m.Splits > 32 || m.Bytes-before > most {
		t.Errorf("%+v, of %d bytes at first", m, before)
	}
	t.Logf("%d splits, %d rebuilds, %d bytes", m.Splits, m.Rebuilds, m.Bytes-before)
}

// Who knows records by their places only has one address for all of them, and two may be of one bucket.
func TestEntriesOfDifferentPlacesMayHaveOneAddress(t *testing.T) {
	f := open(t, Options{})
	a := record.MakeAddress(13, 0)
	for _, p := range []record.Place{1 << 32, 2 << 32, 1 << 48, 2 << 48} {
		for result := Retry; result != Inserted; {
			var pr Probe
			f.Seek(p, &pr)
			for pr.Next() {
			}
			if result = f.Insert(&pr, a); result == Full {
				t.Fatal("the index is full")
			}
		}
		var pr Probe
		if f.Seek(p, &pr); !pr.Next() || !pr.SamePlace() || pr.Address() != a {
			t.Errorf("the entry of place %x is not found", uint64(p))
		}
	}
}
