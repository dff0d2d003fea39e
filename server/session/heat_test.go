package session_test

import (
	"math"
	"testing"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/balance"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/session"
)

func TestOperationsOnSeveralKeysCountWhereTheirKeysAreAndAsUsedTogether(t *testing.T) {
	meter := balance.NewMeter()
	_, addr := serve(t, openStore(t, store.Options{}), session.Options{Heat: meter})
	c := dial(t, "ostro://"+addr, client.Options{})
	a, b := []byte("one"), []byte("two")
	for range 400 { // Few rounds are looked at.
		if _, err := c.MultiGet(t.Context(), 0, [][]byte{a, b}); err != nil {
			t.Fatal(err)
		}
		if err := c.MultiPut(t.Context(), 0, client.Entry{Key: a, Value: b}, client.Entry{Key: b, Value: a}); err != nil {
			t.Fatal(err)
		}
	}
	r := meter.Take()
	first, second := record.SlotOf(a), record.SlotOf(b)
	if r.Ops[first] == 0 || r.Ops[first] != r.Ops[second] {
		t.Errorf("slots %d and %d have %v and %v operations a second, want as many", first, second, r.Ops[first], r.Ops[second])
	}
	if slot := record.SlotOf(nil); r.Ops[slot] != 0 {
		t.Errorf("%v operations a second count for slot %d, where no key is", r.Ops[slot], slot)
	}
	if len(r.Links) != 1 || r.Links[0].A != min(first, second) || r.Links[0].B != max(first, second) || math.Abs(r.Links[0].Rate/r.Ops[first]-1) > 1e-9 {
		t.Errorf("used together are %+v, not slots %d and %d", r.Links, first, second)
	}
}
