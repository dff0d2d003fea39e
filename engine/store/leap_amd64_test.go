package store

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
)

// Copy and Count would be right without leap, only slower: that it finds keys at
// all is shown here.
func TestALeapFindsNearlyEveryKeyAndNoOther(t *testing.T) {
	if !canLeap {
		t.Skip("this processor has not what leap needs")
	}
	_, ss := openOne(t, Options{Durability: None, SegmentBytes: 1 << 20})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	const keys = 100_000
	var there [keys]uint64
	ss.Begin()
	defer ss.End()
	for i := range there {
		there[i] = r.Uint64()
		key := binary.LittleEndian.AppendUint64(nil, there[i])
		k := ss.Key(3, key)
		if s := ss.Put(&k, Write{Value: key}, nil); s != OK {
			t.Fatal(s, ss.Err())
		}
		ss.Seal()
	}
	missed, table := 0, ss.tables.of(3)
	for _, key := range there {
		p, word, state := leap(ss, table, key)
		if p.IsNil() {
			missed++
			continue
		}
		k := ss.Key(3, binary.LittleEndian.AppendUint64(nil, key))
		if !bytes.Equal(p.Key(), k.Bytes) || !hlog.State(state).Mutable() {
			t.Fatalf("leap to %x found %x in state %d", key, p.Key(), state)
		}
		var pr index.Probe
		if _, s := ss.find(&k, &pr); s != OK || pr.Address() != index.AddressIn(word) {
			t.Fatalf("leap to %x found address %v, the index has %v", key, index.AddressIn(word), pr.Address())
		}
		if p, _, _ := leap(ss, ss.tables.of(4), key); !p.IsNil() {
			t.Fatalf("leap to %x found a record of another table", key)
		}
	}
	if missed > keys/8 {
		t.Errorf("leap missed %d of %d keys", missed, keys)
	}
	for range keys {
		if p, _, _ := leap(ss, table, r.Uint64()); !p.IsNil() {
			t.Fatalf("leap found %x, which was never put", p.Key())
		}
	}
}
