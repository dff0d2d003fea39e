package store

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
)

// smallIndex is what an index takes from the start, and all that it gets.
const smallIndex = 4 << 20

// fillIndex writes keys until the index cannot grow, and tells how many it took.
func fillIndex(t *testing.T, st *Store) (keys uint64) {
	t.Helper()
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	for {
		switch s := putNumber(ss, keys); s {
		case OK:
			keys++
		case Refused:
			if !errors.Is(ss.Err(), ErrIndexFull) {
				t.Fatalf("refused after %d keys for %v", keys, ss.Err())
			}
			return keys
		default:
			t.Fatal(s, ss.Err())
		}
		if keys > smallIndex {
			t.Fatal("the index grows without memory")
		}
	}
}

func numberKey(ss *Session, n uint64) Key {
	return ss.Key(0, binary.LittleEndian.AppendUint64(nil, n))
}

func putNumber(ss *Session, n uint64) Status {
	ss.Begin()
	defer ss.End()
	k := numberKey(ss, n)
	return ss.Put(&k, Write{Value: []byte("v")}, nil)
}

func TestAnIndexThatCannotGrowRefusesNewKeysOnly(t *testing.T) {
	st, err := Open(Options{indexBytes: smallIndex})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	keys := fillIndex(t, st)
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	ss.Begin()
	defer ss.End()
	absent := numberKey(ss, keys)
	if s := ss.Lock([]Key{absent}); s != Refused || !errors.Is(ss.Err(), ErrIndexFull) {
		t.Fatalf("a transaction on a new key: %v, %v", s, ss.Err())
	}
	old := numberKey(ss, keys/2)
	if s := ss.Put(&old, Write{Value: []byte("anew")}, nil); s != OK {
		t.Fatalf("an update: %v, %v", s, ss.Err())
	}
	if s := ss.Delete(&old, nil); s != OK {
		t.Fatalf("a deletion: %v, %v", s, ss.Err())
	}
	if got, _ := st.Count(0); got != int64(keys)-1 {
		t.Fatalf("%d keys are counted, %d are there", got, keys-1)
	}
}

func TestAnIndexThatCannotGrowKeepsTheStoreShutInsteadOfLosingKeys(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		dev := device.NewMemory()
		defer dev.Close()
		o := Options{Device: dev, Durability: EverySec, Heads: 1}
		st, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		ss, err := st.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		for n := range uint64(150_000) {
			if s := putNumber(ss, n); s != OK {
				t.Fatal(s, ss.Err())
			}
		}
		ss.Close()
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if !snapshot {
			if err := dev.RemoveMeta(SnapshotMeta); err != nil {
				t.Fatal(err)
			}
		}
		o.indexBytes = smallIndex
		if _, err := Open(o); !errors.Is(err, ErrIndexFull) {
			t.Fatalf("snapshot %v: %v", snapshot, err)
		}
		o.indexBytes = 0
		if st, err = Open(o); err != nil {
			t.Fatal(err)
		}
		if got, _ := st.Count(0); got != 150_000 {
			t.Fatalf("snapshot %v: %d keys are left", snapshot, got)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
