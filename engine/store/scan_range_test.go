package store

import (
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
)

func TestAScanOfARangeShowsItsKeysAndNoOthers(t *testing.T) {
	_, ss := openOne(t, Options{})
	ss.Begin()
	defer ss.End()
	const keys = 20_000
	bySlot := map[uint16]int{}
	table := ss.Key(0, nil).Table
	for i := range keys {
		k := ss.Key(0, fmt.Appendf(nil, "key:%d", i))
		if got := ss.Put(&k, Write{}, nil); got != OK {
			t.Fatal(got)
		}
		bySlot[k.Place.Slot()]++
	}
	for slot := 0; slot < record.PlaceSlots; slot += 127 {
		from := record.Place(slot) << 50
		to := from | (1<<50 - 1)
		n := 0
		for cursor := uint64(0); ; {
			next, got := ss.ScanRange(0, from, to, cursor, 100, func(key []byte, _ *View) {
				if p := record.PlaceOf(table, key); p < from || p > to {
					t.Fatalf("slot %d shows %s of slot %d", slot, key, p.Slot())
				}
				n++
			})
			if got != OK {
				t.Fatal(got)
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
		if n != bySlot[uint16(slot)] {
			t.Fatalf("slot %d shows %d keys, has %d", slot, n, bySlot[uint16(slot)])
		}
	}
}

func TestAScanTellsHowManyRecordsItLookedAt(t *testing.T) {
	_, ss := openOne(t, Options{})
	ss.Begin()
	defer ss.End()
	const others = 1000
	for i := range others {
		k := ss.Key(1, fmt.Appendf(nil, "key:%d", i))
		if got := ss.Put(&k, Write{}, nil); got != OK {
			t.Fatal(got)
		}
	}
	own := ss.Key(0, []byte("own"))
	if got := ss.Put(&own, Write{}, nil); got != OK {
		t.Fatal(got)
	}
	for cursor := uint64(0); ; {
		next, got := ss.Scan(0, cursor, 10, func(key []byte, _ *View) {
			if string(key) != "own" {
				t.Fatalf("database 0 shows %s", key)
			}
		})
		if got != OK {
			t.Fatal(got)
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	if n := ss.Looked(); n < others {
		t.Fatalf("it looked at %d records, and there are %d of another database", n, others)
	}
}
