package meta

import (
	"bytes"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
)

// wish asks for something to be done with a node.
func wish(t *testing.T, s *Store, n view.NodeID, w Wish) Wish {
	t.Helper()
	asked, err := s.Wish(patience(t), n, w)
	ok(t, err)
	return asked
}

// wished returns the wish that there is for a node.
func wished(t *testing.T, s *Store, n view.NodeID) Wish {
	t.Helper()
	w, there := read(t, s).Wishes[n]
	if !there {
		t.Fatalf("there is no wish for %s", n)
	}
	return w
}

func TestAWishIsGrantedOrRefusedByTheCoordinator(t *testing.T) {
	s, _, term := three(t)
	refused := func(n view.NodeID, w Wish, why string) {
		t.Helper()
		_, err := s.Wish(patience(t), n, w)
		wantError(t, err, why)
	}
	refused("n9", Wish{Act: Drain}, "there is no node n9")
	refused("n1", Wish{Act: "dance"}, "use drain, add or remove")
	refused("n1", Wish{Act: Drain, Lost: true}, "only a node that is removed")
	drain := wish(t, s, "n1", Wish{Act: Drain})
	ok(t, term.Defer(patience(t), "n1", wished(t, s, "n1"), "for rain"))
	told := make(chan string, 1)
	done := make(chan error, 1)
	go func() { done <- s.Fulfil(patience(t), "n1", drain, func(why string) { told <- why }) }()
	if why := <-told; why != "for rain" {
		t.Fatalf("it waits for %q", why)
	}
	ok(t, term.MarkDraining(patience(t), "n1", true))
	ok(t, term.Granted(patience(t), "n1", wished(t, s, "n1")))
	ok(t, <-done)

	remove := wish(t, s, "n1", Wish{Act: Remove})
	ok(t, term.Refuse(patience(t), "n1", wished(t, s, "n1"), "it is alive"))
	wantError(t, s.Fulfil(patience(t), "n1", remove, nil), "it is alive")
	if left := read(t, s).Wishes; len(left) != 0 {
		t.Fatalf("left are %v", left)
	}
}

func TestAnAnswerIsForTheWishThatItWasMadeFor(t *testing.T) {
	s, _, term := three(t)
	first := wish(t, s, "n1", Wish{Act: Drain})
	second := wish(t, s, "n1", Wish{Act: Add})
	ok(t, term.Granted(patience(t), "n1", first))
	if w := wished(t, s, "n1"); w.Act != Add {
		t.Fatalf("the second wish became %+v", w)
	}
	wantError(t, s.Fulfil(patience(t), "n1", first, nil), "somebody has asked for add of n1 since: the drain was given up")
	ok(t, s.withdraw(patience(t), "n1", first))
	if w := wished(t, s, "n1"); w.Act != Add {
		t.Fatalf("who withdrew the first wish left %+v", w)
	}
	ok(t, term.Granted(patience(t), "n1", second))
	wantError(t, s.Fulfil(patience(t), "n1", first, nil), "somebody has asked for something else of n1 since")
	ok(t, s.Fulfil(patience(t), "n1", second, nil))
	if left := read(t, s).Wishes; len(left) != 0 {
		t.Fatalf("left are %v", left)
	}
}

func TestMarksStayUntilTheNodeComesBackOrIsRemoved(t *testing.T) {
	s, members, term := three(t)
	wantError(t, term.MarkDraining(patience(t), "n9", true), "there is no node n9")
	wantError(t, term.MarkLost(patience(t), "n3"), "n3 is alive")
	ok(t, term.MarkDraining(patience(t), "n3", true))
	kill(t, members[2])
	ok(t, term.MarkLost(patience(t), "n3"))
	if got := read(t, s); !got.Draining("n3") || !got.Lost("n3") || got.Lost("n2") {
		t.Fatalf("the marks are %v", got.Marks)
	}
	join(t, s, "n3")
	if got := read(t, s); !got.Draining("n3") || got.Lost("n3") {
		t.Fatalf("after it came back the marks are %v", got.Marks)
	}
	ok(t, term.MarkDraining(patience(t), "n3", false))
	if got := read(t, s); len(got.Marks) != 0 {
		t.Fatalf("the marks are %v", got.Marks)
	}
}

func TestTheFirstPlanOfARecoveryStays(t *testing.T) {
	s, members, term := three(t)
	kill(t, members[2])
	log := members[2].Node.Log
	_, err := term.SetPlan(patience(t), log, Plan{})
	wantError(t, err, "there is no recovery")
	_, err = term.Recover(patience(t), "n3", "n1")
	ok(t, err)
	for _, cut := range []Plan{{Cut: 7, Roster: 3}, {Cut: 8, Roster: 4}} {
		got, err := term.SetPlan(patience(t), log, cut)
		ok(t, err)
		if got.Cut != 7 || got.Roster != 3 {
			t.Fatalf("the plan is %+v", got)
		}
	}
	ok(t, members[0].Tell(patience(t), Progress{Who: "n1", Log: log, Stage: "replay", Done: 1, Total: 4}))
	ok(t, term.Tell(patience(t), Progress{Log: log, Stage: "waits"}))
	if got := read(t, s).Progress[log]; len(got) != 2 || got["n1"].Total != 4 {
		t.Fatalf("told was %v", got)
	}
	if p := read(t, s).Recoveries[log].Plan; p == nil || p.Cut != 7 {
		t.Fatalf("etcd has the plan %v", p)
	}
	ok(t, members[0].Recovered(patience(t), all(log)))
	ok(t, term.Finish(patience(t), log))
	ok(t, members[0].Tell(patience(t), Progress{Who: "n1", Log: log, Stage: "late"}))
	if got := read(t, s).Progress; len(got) != 0 {
		t.Fatalf("left is %v", got)
	}
}

func TestTheSecretIsMadeOnceAndNotByWhoOnlyReads(t *testing.T) {
	s := open(t)
	for range 2 {
		seen, err := s.Read(patience(t))
		ok(t, err)
		if got, err := s.SecretOf(seen); err != nil || got != nil {
			t.Fatalf("there is a secret that nobody made: %x, %v", got, err)
		}
	}
	first, err := s.Secret(patience(t))
	ok(t, err)
	second, err := s.Secret(patience(t))
	ok(t, err)
	seen, err := s.Read(patience(t))
	ok(t, err)
	third, err := s.SecretOf(seen)
	ok(t, err)
	if len(first) != 32 || !bytes.Equal(first, second) || !bytes.Equal(first, third) {
		t.Fatalf("the secrets are %x, %x and %x", first, second, third)
	}
}
