package server_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/balance"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/internal/await"
)

// looks is how often the coordinator's balancer has compared loads.
func (w *world) looks() int {
	w.t.Helper()
	const name = "\nostro_balancer_samples_total "
	_, rest, _ := strings.Cut(w.scrape(string(w.cache.Snapshot().Coordinator)), name)
	digits, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(digits)
	w.must(err)
	return n
}

// Under one and the same load it says what it would move, does not even look, and moves.
func TestABalancerMovesNothingUnlessItIsTold(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	var all []string // Keys of n1, of many slots.
	for i := 0; len(all) < 100; i++ {
		if n, _ := w.owner(key(i)); n == "n1" {
			all = append(all, key(i))
		}
	}
	k := w.countBy(func(counter []byte) client.Op {
		n, _ := strconv.Atoi(strings.TrimPrefix(string(counter), "counter:"))
		return client.Add(0, []byte(all[n]), 1)
	}, len(all), "n1", "n2", "n3")
	tell := func(mode meta.BalancerMode) {
		w.must(w.meta.SetBalancer(patient(t), meta.Balancer{Mode: mode, Every: 200 * time.Millisecond, MinOps: 10}))
	}

	tell(meta.BalancerDryRun)
	s := w.await("a decision", func(s *meta.Snapshot) bool {
		return s.Decision.Mode == meta.BalancerDryRun && len(s.Decision.Moves) > 0
	})
	d := s.Decision
	if d.Held != string(balance.HeldDryRun) || !strings.Contains(d.Why, "n1 carries") || !strings.Contains(d.Moves[0], "of n1") || d.Ratio < 2 {
		t.Fatalf("it decided %+v", d)
	}
	seen := w.looks()
	await.True(t, "it looks again and again", func() bool { return w.looks() > seen+3 })
	if s = w.cache.Snapshot(); len(s.Migrations) > 0 || s.Map.ViewID("n1") != 1 {
		t.Fatalf("a dry run moved %+v", s.Migrations)
	}

	tell(meta.BalancerOff)
	total := k.total.Load() // As much as a decision took.
	// A round may have been under way.
	await.True(t, "it neither looks nor decides any more", func() bool {
		before, decided := w.looks(), w.cache.Snapshot().Decision
		k.beyond(total)
		s = w.cache.Snapshot()
		return w.looks() == before && s.Decision.At.Equal(decided.At)
	})
	if len(s.Migrations) > 0 {
		t.Fatalf("it is off, and moved %+v", s.Migrations)
	}

	tell(meta.BalancerAuto)
	w.await("a move", func(s *meta.Snapshot) bool {
		for _, m := range s.Migrations {
			if m.By == meta.ByBalancer && m.Source == "n1" && m.Stage == meta.Done {
				return true
			}
		}
		return false
	})
	k.stop.Store(true)
	k.all.Wait()
	for i, name := range all {
		if got, err := k.c.Get(patient(t), 0, []byte(name)).Wait(); err != nil || got.Int() != k.sums[i].Load() {
			t.Fatalf("%s is %d, not %d (%v)", name, got.Int(), k.sums[i].Load(), err)
		}
	}
}
