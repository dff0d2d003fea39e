package server

import (
	"slices"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/balance"
	"github.com/ostrodb/ostro/cluster/meta"
)

func TestWhatOnlySettlesIsNotSaidToMove(t *testing.T) {
	served := time.Now()
	for _, c := range []struct {
		m      meta.Migration
		moving bool
	}{
		{meta.Migration{Stage: meta.Wanted}, true},
		{meta.Migration{Stage: meta.Moving}, true},
		{meta.Migration{Stage: meta.Copying}, true},
		{meta.Migration{Stage: meta.Moving, Served: served}, false},
		{meta.Migration{Stage: meta.Moving, Served: served, Cancel: true}, true},
		{meta.Migration{Stage: meta.Returning, Served: served}, true},
		{meta.Migration{Stage: meta.Done, Served: served}, false},
	} {
		s := &meta.Snapshot{Migrations: map[uint64]meta.Migration{1: c.m}}
		if got := unsettled(s); got != c.moving {
			t.Errorf("%s, served %v, cancelled %v: moving is %v", c.m.Stage, !c.m.Served.IsZero(), c.m.Cancel, got)
		}
		c.m.Source, c.m.Target = "n1", "n2"
		s.Migrations[1] = c.m
		if settling := c.m.Settling() && !c.m.Cancel; settles(s, "n1") != settling || settles(s, "n2") != settling || settles(s, "n3") {
			t.Errorf("%s, served %v, cancelled %v: it settles at the wrong nodes", c.m.Stage, !c.m.Served.IsZero(), c.m.Cancel)
		}
	}
}

func TestLoadsArriveAsTheyWereSent(t *testing.T) {
	ops := make([]float64, balance.Slots)
	ops[0], ops[77], ops[balance.Slots-1] = 1, 123456, 0.5
	sizes := make([]float64, balance.Slots)
	sizes[5], sizes[77] = 4096, 1
	list := appendLoad(nil, ops)
	a := loadAnswer{Bytes: 8192, Used: len(list)}
	got, err := a.of("n1", appendLoad(list, sizes))
	if err != nil || !slices.Equal(got.Ops, ops) || !slices.Equal(got.Sizes, sizes) || got.Bytes != 8192 || got.Node != "n1" {
		t.Fatalf("%v", err)
	}
	for _, used := range []int{-1, len(list) + 1, 1} {
		a.Used = used
		if _, err := a.of("n1", list); err == nil {
			t.Errorf("a list of %d bytes has %d of operations", len(list), used)
		}
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
