package replica

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/internal/await"
)

var errAnswerLost = errors.New("the test loses the answer")

// Between its becoming one of the copies and its knowing how much there was by then others may write through it.
func TestACopyIsNotCompleteBeforeItIsKnownWhatItLacks(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	p := c.primary(w, c.options(2))
	h := w.head()
	for range 100 {
		w.await(h.write(1, 1000))
	}
	g := (*p.open.Load())[h.id]
	var third view.NodeID
	for id := range c.nodes {
		if !slices.Contains(g.holders(), id) {
			third = id
		}
	}
	s, err := p.openStream(t.Context(), g, third, recruiting{creating: true, patience: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.admit(g, s); err != nil {
		t.Fatal(err)
	}
	h.write(1, 10) // It goes to all copies.
	await.True(t, "something has arrived in the new copy", func() bool { return s.done.Load() > 0 })
	select {
	case <-s.complete:
		t.Fatalf("the copy counts as complete with some of %d bytes", g.sealed.Load())
	default:
	}
	s.join()
	await.True(t, "the copy is complete", func() bool {
		select {
		case <-s.complete:
			return true
		default:
			return false
		}
	})
	if done, sealed := s.done.Load(), g.sealed.Load(); done < sealed {
		t.Errorf("the copy is complete with %d of %d bytes", done, sealed)
	}
}

// surveying asks a backup what it has when it has just taken a copy, before anybody heard of that.
type surveying struct {
	*caller
	p atomic.Pointer[Primary]
}

func (s *surveying) Call(ctx context.Context, to view.NodeID, method string, head any, bulk []byte, answer any) ([]byte, error) {
	b, err := s.caller.Call(ctx, to, method, head, bulk, answer)
	if method == MethodPut && err == nil {
		_, err = s.p.Load().survey(ctx, to)
	}
	return b, err
}

// Of two who learn of the same copy each would count one, and nobody would miss the other when the first is gone.
func TestACopyThatIsHeardOfTwiceCountsOnce(t *testing.T) {
	c := newCluster(t, 2, 2, testSegment)
	w := newWriter(t, testSegment)
	o := c.options(2)
	peers := &surveying{caller: c.caller}
	o.Peers, o.HealthEvery = peers, time.Hour
	peers.p.Store(c.primary(w, o))
	h := w.head()
	for len(w.closed) < 2 {
		w.await(h.write(10, 1000))
	}
	c.add("n3")
	c.add("n4")
	for _, id := range []view.NodeID{"n1", "n2"} {
		c.kill(id)
		c.members.leave(id)
		c.settled(w, 2)
		w.await(h.write(1, 10))
		c.checkCopies(w, 2)
	}
}

// It is back before anybody saw that it was gone, and nothing is written to it any more that would tell.
func TestOpenReplicasThatANodeLostWithItsDiskAreMadeAnewThoughNobodyWrites(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	o := c.options(2)
	o.HealthEvery = time.Hour
	c.primary(w, o)
	h := w.head()
	w.await(h.write(10, 1000))
	loser := holderOf(w.p, h.id)
	ghost := loser + "~1"
	c.kill(loser)
	if err := os.RemoveAll(c.nodes[loser].dir); err != nil {
		t.Fatal(err)
	}
	c.start(loser)
	if err := c.book.AddBackup(t.Context(), ghost); err != nil {
		t.Fatal(err)
	}
	c.members.haunt(ghost, loser)
	await.True(t, "the ghost is not needed any more", func() bool { return !c.book.has(ghost) })
	c.checkCopies(w, 2)
}

// Who does not hear whether the ledger has more copies now keeps to what it may say.
func TestThereAreNeverFewerCopiesThanTheLedgerMaySay(t *testing.T) {
	c := newCluster(t, 2, 2, testSegment)
	w := newWriter(t, testSegment)
	p := c.primary(w, c.options(2))
	h := w.head()
	w.await(h.write(1, 10))
	c.kill("n1")
	c.members.leave("n1")
	c.settled(w, 1)
	var once atomic.Bool
	c.book.answers(func(call string) error {
		if call != "copies 2" || once.Swap(true) {
			return nil
		}
		c.kill("n1")
		c.members.leave("n1")
		return errAnswerLost
	})
	c.start("n1")
	await.True(t, "the ledger has more copies, and nobody knows", once.Load)
	for segments := len(w.closed) + 2; len(w.closed) < segments; {
		w.await(h.write(10, 1000))
	}
	_, said, _ := c.book.state()
	p.mu.Lock()
	least := p.leastCopies()
	p.mu.Unlock()
	if said > least {
		t.Fatalf("the ledger speaks of %d copies, and writes are acknowledged that have %d", said, least)
	}
	c.settled(w, 1)
	c.start("n1")
	c.settled(w, 2)
	c.checkCopies(w, 2)
}

func TestTheLedgerHearsAgainOfCopiesThatItMayNotKnow(t *testing.T) {
	c := newCluster(t, 2, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	h := w.head()
	w.await(h.write(1, 10))
	var once atomic.Bool
	c.book.answers(func(call string) error {
		if call != "copies 1" || once.Swap(true) {
			return nil
		}
		c.members.join(Member{ID: "n1"}) // Its lease had ended for a moment only.
		return errAnswerLost
	})
	c.members.leave("n1")
	await.True(t, "the ledger has fewer copies, and nobody knows", once.Load)
	c.settled(w, 2)
}

// Who does not hear whether a node was excluded has it noted again before it counts on it.
func TestANodeThatMayBeExcludedIsNotedBeforeItGetsACopy(t *testing.T) {
	c := newCluster(t, 4, 2, testSegment)
	w := newWriter(t, testSegment)
	o := c.options(2)
	o.OpenTimeout = 10 * time.Second
	p := c.primary(w, o)
	w.await(w.head().write(1, 10))
	var once atomic.Bool
	c.book.answers(func(call string) error {
		if call != "exclude n1" || once.Swap(true) {
			return nil
		}
		c.start("n1")
		return errAnswerLost
	})
	if err := p.addBackup(t.Context(), "n1"); err != nil {
		t.Fatal(err)
	}
	c.kill("n1")
	c.members.leave("n1")
	await.True(t, "n1 is excluded, and nobody knows", once.Load)
	await.True(t, "n1 has a copy", func() bool {
		id := w.prepare()
		return slices.Contains((*p.open.Load())[id].holders(), "n1")
	})
	if !c.book.has("n1") {
		t.Error("a copy at n1 counts, and no recovery would ask it")
	}
}

// Whoever is told of a roster waits until somebody has it.
func TestARosterThatNobodyGotIsNotWaitedFor(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	p := c.primary(w, c.options(2))
	w.await(w.head().write(1, 10))
	c.settled(w, 2)
	p.roster() // as for a segment that was dropped before it could be copied
	if got, told := c.find().Roster.Number, p.RosterNumber(); got < told || told == 0 {
		t.Errorf("backups have roster %d, and %d is told", got, told)
	}
}
