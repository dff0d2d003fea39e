package record_test

import (
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
)

func TestAFloorHidesWhatIsBelowItInItsPlacesOnly(t *testing.T) {
	f := record.Floor{Spans: []record.Span{{First: 10, Last: 20}, {First: 40, Last: 40}}, Batch: 7, Segment: 3}
	for _, c := range []struct {
		place  record.Place
		batch  record.BatchID
		id     record.SegmentID
		counts bool
	}{
		{9, 6, 1, true},
		{10, 6, 1, false},
		{20, 6, 9, false}, // An old batch of a segment that went on.
		{21, 6, 1, true},
		{40, 1, 1, false},
		{15, 7, 1, true},
		{15, 0, 2, false}, // In a side segment.
		{15, 0, 3, true},
		{21, 0, 2, true},
	} {
		if got := f.Counts(c.place, c.batch, c.id); got != c.counts {
			t.Errorf("an entry at %d in batch %d of segment %d counts: %v", c.place, c.batch, c.id, got)
		}
	}
}

func TestAboveKnowsTheBatchOfEveryEntry(t *testing.T) {
	const id = 5
	seg := make([]byte, 4096)
	chain := record.NewChain(id)
	off := record.EncodeSegmentHeader(seg, 1, id, 0, 4096)
	chain.Add(record.PtrOf(seg))
	batchOf := map[uint32]record.BatchID{}
	for n := record.BatchID(1); n <= 9; n++ {
		for i := range int(n) % 3 {
			e := seg[off:]
			batchOf[uint32(off)] = n
			off += record.Encode(e, &record.Header{Type: record.TypePut, Version: 1}, fmt.Append(nil, n, i), nil, true)
			chain.Add(record.PtrOf(e))
		}
		chain.PutSeal(seg[off:], n, n == 9)
		off += record.SealBytes
	}
	ext, err := record.ScanWith(seg, id, record.ScanOptions{Closed: true})
	if err != nil {
		t.Fatal(err)
	}
	everywhere := []record.Span{{First: 0, Last: ^record.Place(0)}}
	for floor := record.BatchID(0); floor <= 11; floor++ {
		above := record.NewAbove([]record.Floor{{Spans: everywhere, Batch: floor}}, id, seg[:ext.End])
		if (above == nil) != (floor <= 1) {
			t.Errorf("floor %d: all counts: %v", floor, above == nil)
		}
		seen := 0
		for off, p := range record.Entries(seg[:ext.End]) {
			if p.Type() != record.TypePut {
				continue
			}
			seen++
			if got, want := above.Counts(off, 1), batchOf[off] >= floor; got != want {
				t.Errorf("floor %d: an entry of batch %d counts: %v", floor, batchOf[off], got)
			}
		}
		if seen != len(batchOf) {
			t.Fatalf("%d entries of %d", seen, len(batchOf))
		}
	}
}
