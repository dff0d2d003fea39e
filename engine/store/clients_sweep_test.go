package store

import (
	"sync"
	"testing"
)

// A client is forgotten in the moment in which it is heard of again. What it runs then is its next owner's to know.
func TestAClientThatIsHeardOfWhileItIsForgottenIsRemembered(t *testing.T) {
	const now, until, rounds = 10, 20, 200_000
	whole := []Range{wholeRange}
	for round := range rounds {
		var cs clients
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { cs.sweep(now) })
		}
		cs.note(OpID{1, 1}, 0, now, until)
		both.Wait()
		if kept := cs.kept(whole, now); len(kept) != 1 {
			t.Fatalf("round %d: %d operations are known", round, len(kept))
		}
	}
}
