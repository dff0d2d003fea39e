package store_test

import (
	"strconv"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
)

// transferOn moves money from one account to another in a transaction, and
// does not seal it.
func transferOn(t *testing.T, ss *store.Session, from, to string) {
	t.Helper()
	keys := []store.Key{ss.Key(0, []byte(from)), ss.Key(0, []byte(to))}
	if st := ss.Lock(keys); st != store.OK {
		t.Fatal(st, ss.Err())
	}
	for i, by := range []int{-1, 1} {
		v, _ := ss.Get(&keys[i])
		sum, _ := strconv.Atoi(string(v.Value))
		if st := ss.Put(&keys[i], store.Write{Value: strconv.AppendInt(nil, int64(sum+by), 10)}, nil); st != store.OK {
			t.Fatal(st, ss.Err())
		}
	}
	if st := ss.Commit(); st != store.OK {
		t.Fatal(st, ss.Err())
	}
}

func TestACrashKeepsNoTransactionWithoutTheOneItBuildsOn(t *testing.T) {
	for _, durability := range []store.Durability{store.EverySec, store.Always} {
		t.Run(durability.String(), func(t *testing.T) {
			dev := device.NewMemory()
			o := store.Options{Device: dev, Durability: durability, Heads: 4}
			st := open(t, o)
			first, second := session(t, st), session(t, st)

			first.Begin()
			transferOn(t, first, "a", "b")
			second.Begin()
			transferOn(t, second, "a", "c")
			second.Seal()
			second.End()
			o.Device = dev.Crash() // The first round is still under way.
			first.Seal()
			first.End()

			sum := 0
			ss := session(t, open(t, o))
			for _, name := range []string{"a", "b", "c"} {
				k := ss.Key(0, []byte(name))
				ss.Begin()
				v, _ := ss.Get(&k)
				n, _ := strconv.Atoi(string(v.Value))
				ss.End()
				sum += n
			}
			if sum != 0 {
				t.Fatalf("%d was made of nothing", sum)
			}
		})
	}
}
