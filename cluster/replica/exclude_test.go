package replica

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/internal/await"
)

func (b *book) has(n view.NodeID) bool {
	_, _, backups := b.state()
	return slices.Contains(backups, n)
}

func TestANodeThatIsNotedAsABackupAfterItLeftIsExcludedAgain(t *testing.T) {
	c := newCluster(t, 4, 2, testSegment)
	w := newWriter(t, testSegment)
	p := c.primary(w, c.options(2))
	w.await(w.head().write(1, 10))
	c.kill("n1")
	c.members.leave("n1")
	c.settled(w, 2)
	if err := p.addBackup(t.Context(), "n1"); err != nil { // as by one who saw it among the living
		t.Fatal(err)
	}
	await.True(t, "it is no backup any more", func() bool { return !c.book.has("n1") })
}

func TestACopyAtANodeThatIsExcludedMeanwhileDoesNotCount(t *testing.T) {
	c := newCluster(t, 4, 2, testSegment)
	w := newWriter(t, testSegment)
	p := c.primary(w, c.options(2))
	w.await(w.head().write(1, 10))
	var excluded atomic.Pointer[view.NodeID]
	c.caller.intercept(func(to view.NodeID, method string) error {
		if method == MethodPut && excluded.Load() == nil && p.excludeOne(context.Background(), to, c.members.now()) == nil {
			excluded.Store(&to)
		}
		return nil
	})
	await.True(t, "a node is excluded while it gets a copy", func() bool {
		w.adopt(w.side(10))
		return excluded.Load() != nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, s := range p.books.closed {
		for _, n := range s.holders {
			if !c.book.has(n) {
				t.Errorf("a copy of segment %d at %s counts, and no recovery would ask it", id, n)
			}
		}
	}
}

// Without etcd no node can be noted as a backup; those that are do.
func TestSegmentsAreOpenedAtBackupsThatAreNotedWhileTheLedgerIsAway(t *testing.T) {
	c := newCluster(t, 4, 2, testSegment)
	w := newWriter(t, testSegment)
	o := c.options(2)
	o.CallTimeout = time.Hour
	c.primary(w, o)
	for !c.book.has("n1") || !c.book.has("n2") || !c.book.has("n3") || !c.book.has("n4") {
		w.prepare()
	}
	c.book.away.Store(true)
	c.add("n5")
	for range 10 { // One of them at least would be at the new node.
		w.prepare()
	}
	if c.book.has("n5") {
		t.Fatal("the ledger heard of the new node")
	}
}
