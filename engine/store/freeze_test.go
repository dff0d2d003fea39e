package store

import (
	"encoding/binary"
	"testing"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// freezing is a counter, key "key" of ss[1], in a segment that was announced
// read-only while ss[0] was updating it in place.
type freezing struct {
	*bench
	k   Key
	pr  index.Probe
	old record.Ptr
}

func newFreezing(t *testing.T) *freezing {
	t.Helper()
	f := &freezing{bench: newBench(t, Checkpoint)}
	f.ss[0].Begin()
	f.k = f.ss[0].Key(0, []byte("key"))
	if sum, st := f.ss[0].Add(&f.k, 1); sum != 1 || st != OK {
		t.Fatal(sum, st)
	}
	f.st.log.Freeze(f.retire(0), func() {})
	f.ss[1].Begin()
	var st Status
	if f.old, st = f.ss[1].find(&f.k, &f.pr); st != OK {
		t.Fatal(st)
	}
	if f.st.log.Mutable(f.pr.Address()) || f.st.log.Frozen(f.pr.Address()) {
		t.Fatal("nothing is freezing")
	}
	return f
}

// end lets ss[0] add 1, for it began before the announcement, and go.
func (f *freezing) end() {
	ver := f.old.Version()
	if !f.old.LockVersion(ver) {
		f.t.Fatal("the counter is locked")
	}
	value := f.old.Value()
	binary.LittleEndian.PutUint64(value, binary.LittleEndian.Uint64(value)+1)
	f.old.UnlockVersion(ver + 1)
	f.ss[0].End()
	for !f.st.log.Frozen(f.pr.Address()) {
		f.st.epoch.Drain()
		yield(9)
	}
}

func TestTheLastUpdateInPlaceIsNotOverwritten(t *testing.T) {
	f := newFreezing(t)
	ss := f.ss[1]
	defer ss.End()
	ver := versionOf(f.old) // 1, which ss[1] would make 2.
	f.end()
	e := entry{Header: record.Header{Type: record.TypePut, Table: f.k.Table}, value: binary.LittleEndian.AppendUint64(nil, 2)}
	if st := ss.install(&f.k, &e, &f.pr, f.old, ver); st != Conflict {
		t.Fatalf("a counter of 2 was overwritten by one who saw 1: %v", st)
	}
	if sum, st := ss.Add(&f.k, 1); sum != 3 || st != OK {
		t.Fatalf("three additions make %d, %v", sum, st)
	}
}

func TestATombstoneIsNewerThanTheLastUpdateInPlace(t *testing.T) {
	f := newFreezing(t)
	ss := f.ss[1]
	ver := versionOf(f.old)
	f.end()
	if st := ss.remove(&f.k, &f.pr, f.old, ver); st == OK {
		t.Errorf("a tombstone of version %d stands for a record of version %d", ver+1, versionOf(f.old))
	}
	ss.End()
}

func TestWhoSawARecordChangeableDoesNotTakeItForConstant(t *testing.T) {
	f := newFreezing(t)
	defer f.ss[1].End()
	at := f.st.log.See(f.pr.Address())
	f.end()
	if at.Constant() {
		t.Fatal("what was read before the last update in place would count")
	}
	if !f.st.log.See(f.pr.Address()).Constant() {
		t.Fatal("it never gets constant")
	}
}
