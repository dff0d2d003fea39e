package replica

import (
	"testing"
	"time"
)

// poolOf is an empty pool of small buffers, so many at the most.
func poolOf(t *testing.T, limit int) *bufferPool {
	p, _, _, err := openPool(t.TempDir(), 1<<20, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	return p
}

func takeOf(t *testing.T, p *bufferPool) {
	b, err := p.take()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.unmap() })
}

func TestBuffersAreMadeAheadWhenNobodyHasTakenOneForAWhile(t *testing.T) {
	p := poolOf(t, 16)
	if err := p.prepare(4); err != nil {
		t.Fatal(err)
	}
	wakes := 0
	p.wake = func() { wakes++ }
	takeOf(t, p)
	if wakes != 1 {
		t.Error("nobody was told that there is to be another one")
	}
	p.taken = time.Now().Add(time.Hour)
	if p.unrest() <= 0 {
		t.Error("one was just taken, three are left, and zeroes are made at once")
	}
	p.taken = time.Now().Add(-2 * calmAfter)
	if d := p.unrest(); d != 0 {
		t.Errorf("nobody takes any, and zeroes wait for %v", d)
	}
	made := 0
	for p.replenish(4, func() {}) {
		made++
	}
	if made != 1 || len(p.free) != 4 {
		t.Errorf("%d were made and %d are free, want 1 and 4", made, len(p.free))
	}
	for len(p.free) >= fewFree {
		takeOf(t, p)
	}
	if d := p.unrest(); d != 0 {
		t.Errorf("hardly any is left, and zeroes wait for %v", d)
	}
}

func TestNoMoreBuffersAreMadeAheadThanMayBeUsed(t *testing.T) {
	p := poolOf(t, 3)
	takeOf(t, p)
	for p.replenish(8, func() {}) {
		continue
	}
	if len(p.free) != 2 {
		t.Errorf("%d are free beside one of at most three", len(p.free))
	}
}
