package balance_test

import (
	"math"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/cluster/balance"
	"github.com/ostrodb/ostro/cluster/view"
)

func TestMetersSeeWhatWorkersDoAndForgetNobodyWhoLeft(t *testing.T) {
	m := balance.NewMeter()
	hot, warm := view.SlotsRange(7, 7).First, view.SlotsRange(16383, 16383).First
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			g := m.Gauge()
			for range 16_000 {
				if counts := g.Begin(); counts != nil {
					counts.Note(hot)
					counts.Note(hot)
					counts.Note(warm)
				}
			}
			m.Drop(g)
		})
	}
	workers.Wait()
	ops := m.Take()
	if ops[7] == 0 || math.Abs(ops[7]/ops[16383]-2) > 1e-9 {
		t.Fatalf("slot 7 has %v a second and slot 16383 %v, want twice as many", ops[7], ops[16383])
	}
	for slot, rate := range m.Take() {
		if rate != 0 {
			t.Fatalf("slot %d still has %v a second, and nothing was done", slot, rate)
		}
	}
}

func TestWithoutAMeterNothingIsCounted(t *testing.T) {
	var m *balance.Meter
	if m.Gauge().Begin() != nil {
		t.Fatal("a gauge of no meter counts")
	}
}
