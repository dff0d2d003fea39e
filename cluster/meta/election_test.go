package meta

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
)

func TestAnotherIsCoordinatorWhenTheFirstIsKilled(t *testing.T) {
	s := open(t, short)
	cache := follow(t, s)
	c := startChild(t, "n1", "coordinator")
	first := await(t, cache, "a coordinator", func(s *Snapshot) bool { return s.Coordinator == "n1" }).Revision
	relax(t, s)
	second := join(t, s, "n2")
	c.signal(syscall.SIGKILL)
	term := campaign(t, second)
	if read(t, s).alive("n1") || term.Token() <= first {
		t.Fatalf("token %d, the first was coordinator by %d", term.Token(), first)
	}
	await(t, cache, "the new coordinator", func(s *Snapshot) bool { return s.Coordinator == "n2" })
	ok(t, term.Begin(patience(t), "n2"))
}

func TestADeposedCoordinatorWritesNothing(t *testing.T) {
	s := open(t)
	a, b := join(t, s, "a"), join(t, s, "b")
	old := campaign(t, a)
	kill(t, a)
	current := campaign(t, b)
	if err := old.Begin(patience(t), "b"); !errors.Is(err, ErrDeposed) {
		t.Fatalf("the old one: %v", err)
	}
	if err := old.note(t, 1); !errors.Is(err, ErrDeposed) {
		t.Fatalf("the old one: %v", err)
	}
	if !read(t, s).Map.IsZero() {
		t.Fatal("a deposed coordinator wrote a map")
	}
	ok(t, current.Begin(patience(t), "b"))
	if old.Token() >= current.Token() {
		t.Fatalf("tokens %d and %d", old.Token(), current.Token())
	}
}

func TestWhoIsDeposedBetweenReadingAndWritingWritesNothing(t *testing.T) {
	s := open(t)
	m := join(t, s, "a")
	term := campaign(t, m)
	for _, right := range []func() writer{func() writer { return m.writer }, func() writer { return term.writer }} {
		w := right()
		err := w.change(patience(t), func(e *edit) error {
			_, _ = s.client.Revoke(patience(t), m.Lease.id)
			return e.put(keyWish("late"), Wish{Act: Add})
		})
		if !errors.Is(err, w.fence.gone) || len(read(t, s).Wishes) != 0 {
			t.Fatalf("got %v, wishes %v", err, read(t, s).Wishes)
		}
		m = join(t, s, "a")
		term = campaign(t, m)
	}
}

func TestWhoLosesItsLeaseWhileItWaitsIsNotElected(t *testing.T) {
	s := open(t)
	a, b := join(t, s, "a"), join(t, s, "b")
	first := campaign(t, a)
	elected := make(chan error, 1)
	go func() {
		_, err := b.Campaign(patience(t))
		elected <- err
	}()
	waits := func(s *Snapshot) bool {
		n := 0
		for key := range s.raw {
			if strings.HasPrefix(key, dirCoordinator) {
				n++
			}
		}
		return n == 2
	}
	await(t, follow(t, s), "b to stand", waits)
	kill(t, b)
	ok(t, first.Resign(patience(t)))
	if err := <-elected; !errors.Is(err, ErrLeaseLost) {
		t.Fatalf("b: %v", err)
	}
}

func TestWhoResignsMakesRoomAndStaysAMember(t *testing.T) {
	s := open(t)
	a, b := join(t, s, "a"), join(t, s, "b")
	term := campaign(t, a)
	ok(t, term.Resign(patience(t)))
	campaign(t, b)
	if got := read(t, s); got.Coordinator != "b" || !got.alive("a") || !a.Lease.Alive() {
		t.Fatalf("coordinator %q, a alive: %v", got.Coordinator, got.alive("a"))
	}
}

// Coordinators come and go while all who ever were one try to recover the same
// dead node, with heirs of their own choice.
func TestOfManyCoordinatorsThatRecoverANodeOneWins(t *testing.T) {
	s, members, term := three(t)
	terms := []*Term{term}
	for i := range 3 {
		ok(t, terms[i].election.Resign(patience(t)))
		terms = append(terms, campaign(t, members[(i+1)%2]))
	}
	kill(t, members[2])
	before := read(t, s)
	var won atomic.Int32
	var all sync.WaitGroup
	for round := range 3 {
		for i, term := range terms {
			all.Go(func() {
				_, err := term.Recover(patience(t), "n3", view.NodeID(fmt.Sprint("n", (i+round)%2+1)))
				if err == nil {
					won.Add(1)
				}
			})
		}
	}
	all.Wait()
	after := read(t, s)
	if won.Load() != 1 || after.Map.ViewID("n3") != before.Map.ViewID("n3")+1 || len(after.Recoveries) != 1 {
		t.Fatalf("%d won, n3 is in view %d, %d recoveries", won.Load(), after.Map.ViewID("n3"), len(after.Recoveries))
	}
	ok(t, view.Validate(before.Map, after.Map))
}
