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
	ops := m.Take().Ops
	if ops[7] == 0 || math.Abs(ops[7]/ops[16383]-2) > 1e-9 {
		t.Fatalf("slot 7 has %v a second and slot 16383 %v, want twice as many", ops[7], ops[16383])
	}
	for slot, rate := range m.Take().Ops {
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

func TestMetersNameTheKeyThatHasMostOfTheLoadAndWhatIsUsedTogether(t *testing.T) {
	m := balance.NewMeter()
	g := m.Gauge()
	hot := view.SlotsRange(7, 7).First + 99
	work := func() balance.Reading {
		for i := range 16_000 {
			if counts := g.Begin(); counts != nil {
				counts.Note(hot)
				counts.Note(hot)
				counts.Note(hot)
				other := view.SlotsRange(uint16(i%16384), uint16(i%16384)).First
				counts.Note(other)
				counts.Together(hot, view.SlotsRange(9, 9).First)
				counts.Together(hot, hot+1) // Of one slot: never torn apart.
			}
		}
		return m.Take()
	}
	work() // It is elected, and counted from then on.
	r := work()
	if r.Hot.Slot != 7 || math.Abs(r.Hot.Share-0.75) > 0.01 {
		t.Errorf("the hot key is %+v, not one of slot 7 with 75%%", r.Hot)
	}
	if len(r.Links) != 1 || r.Links[0].A != 7 || r.Links[0].B != 9 || r.Links[0].Rate <= 0 {
		t.Errorf("used together: %+v, not slots 7 and 9", r.Links)
	}
	if r := m.Take(); len(r.Links) != 0 {
		t.Errorf("still used together: %+v, and nothing was done", r.Links)
	}
}
