package server

import (
	"slices"
	"testing"

	"github.com/ostrodb/ostro/cluster/balance"
)

func TestLoadsArriveAsTheyWereSent(t *testing.T) {
	ops := make([]float64, balance.Slots)
	ops[0], ops[77], ops[balance.Slots-1] = 1, 123456, 0.5
	got, err := decodeLoad(appendLoad(nil, ops))
	if err != nil || !slices.Equal(got, ops) {
		t.Fatalf("%v", err)
	}
}

func FuzzReadingALoad(f *testing.F) {
	f.Add(appendLoad(nil, []float64{0, 1, 2}))
	f.Add([]byte{0xff, 0xff, 0, 0, 0x80, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		ops, err := decodeLoad(b)
		if err != nil {
			return
		}
		for slot, rate := range ops {
			if !(rate >= 0) || rate > 1e39 {
				t.Fatalf("slot %d has %v", slot, rate)
			}
		}
	})
}
