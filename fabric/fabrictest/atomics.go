package fabrictest

import (
	"sync"
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

func (s Suite) atomics(t *testing.T) {
	s.test(t, "CAS swaps on a match only and brings what was there", func(t *testing.T, a, b *end) {
		b.word(64).Store(41)
		a.ok(fabric.CAS(b.at(64), 41, 42, a.piece(0, 8)))
		if a.word(0).Load() != 41 || b.word(64).Load() != 42 {
			t.Fatalf("match: brought %d, left %d", a.word(0).Load(), b.word(64).Load())
		}
		a.ok(fabric.CAS(b.at(64), 41, 99, a.piece(8, 8)))
		if a.word(8).Load() != 42 || b.word(64).Load() != 42 {
			t.Fatalf("no match: brought %d, left %d", a.word(8).Load(), b.word(64).Load())
		}
		a.ok(fabric.CAS(b.at(64), 42, 43))
		if b.word(64).Load() != 43 {
			t.Fatal("a CAS without a place for its result did nothing")
		}
	})
	s.test(t, "ADD adds and wraps around", func(t *testing.T, a, b *end) {
		b.word(0).Store(5)
		a.ok(fabric.Add(b.at(0), ^uint64(0), a.piece(0, 8)))
		if a.word(0).Load() != 5 || b.word(0).Load() != 4 {
			t.Fatalf("brought %d, left %d", a.word(0).Load(), b.word(0).Load())
		}
	})
	s.test(t, "atomics of many queue pairs and of the processor lose nothing", s.testAtomicRace)
}

// testAtomicRace adds to one word from four queue pairs, by ADD and by CAS loops.
func (s Suite) testAtomicRace(t *testing.T, a, b *end) {
	rounds := s.Rounds
	var wait sync.WaitGroup
	for i := range 4 {
		p := newEnd(t, a.dev, fabric.QPConfig{})
		q := b.newQP(fabric.QPConfig{})
		connect(t, p.qp, q)
		wait.Go(func() {
			for range rounds {
				if i%2 == 0 {
					p.ok(fabric.Add(b.at(0), 1, p.piece(0, 8)))
				} else {
					p.increment(b.at(0))
				}
			}
		})
	}
	for range rounds {
		b.word(0).Add(1)
	}
	wait.Wait()
	if got := b.word(0).Load(); got != uint64(5*rounds) {
		t.Fatalf("%d increments left %d", 5*rounds, got)
	}
}

// increment adds one by compare-and-swap.
func (e *end) increment(at fabric.Target) {
	e.t.Helper()
	for seen := uint64(0); ; {
		e.ok(fabric.CAS(at, seen, seen+1, e.piece(0, 8)))
		was := e.word(0).Load()
		if was == seen {
			return
		}
		seen = was
	}
}
