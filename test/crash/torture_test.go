package crash

import (
	"os"
	"testing"
	"time"
)

func TestKillsAtRandomMomentsLoseNothingThatWasPromised(t *testing.T) {
	seed, b := seedOf(t), newBudget()
	began, all := time.Now(), b.kills
	lives := kinds()
	for n := 0; b.left(); n++ {
		k := lives[n%len(lives)]
		if *lifeFlag != "" && k.name != *lifeFlag {
			continue
		}
		live(t, k, uint64(seed)+uint64(n), &b)
	}
	t.Logf("%d kills in %s", all-b.kills, time.Since(began).Round(time.Second))
}

// live is one life from its first server to its last.
func live(t *testing.T, k kind, seed uint64, b *budget) {
	l := newLife(t, k, seed, b)
	l.start()
	l.verify(true)
	generations := 2
	if b.kills > 50 {
		generations = 3 + l.rng.IntN(10)
	}
	for range generations {
		if b.left() {
			l.round()
		}
	}
	l.server.Kill()
	l.check()
	if testing.Verbose() {
		for _, s := range l.trail {
			t.Logf("%s: %s", k.name, s)
		}
	}
	for _, dir := range []string{l.root, l.before()} {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}
