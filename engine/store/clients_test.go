package store_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
)

func TestResultsThatArrivedAreForgottenAndNotRunAgain(t *testing.T) {
	forResults(t, func(t *testing.T, o store.Options, clock *atomic.Int64) {
		st := open(t, o)
		ss := session(t, st)
		const ops, answered = 50, 40
		runMany(t, ss, ops)
		answer := func(below uint64) {
			ss.Begin()
			ss.Answered(1, below)
			ss.End()
		}
		answer(answered)
		answer(answered / 2) // An older batch, on another connection.
		if m := st.Metrics(); m.Results != ops-answered || m.Keys != ops {
			t.Fatalf("%d results and %d keys are left", m.Results, m.Keys)
		}
		for i := range answered {
			late := operation{id: store.OpID{Client: 1, Seq: uint64(i)}, key: fmt.Sprint("key:", i)}
			if _, _, s := late.run(ss, store.Effect{Delete: true}); s != store.Failed {
				t.Fatalf("an attempt after its answer: %v", s)
			}
			if got := readKey(t, ss, 0, []byte(late.key)); string(got) != "v" {
				t.Fatalf("an attempt after its answer left %q", got)
			}
		}
		for i := answered; i < ops; i++ {
			again := operation{id: store.OpID{Client: 1, Seq: uint64(i)}, key: fmt.Sprint("key:", i)}
			if got, was, s := again.run(ss, store.Effect{Delete: true}); s != store.OK || !was || string(got) != fmt.Sprint("first ", i) {
				t.Fatalf("an attempt before its answer: %v %q", s, got)
			}
		}
		other := operation{id: store.OpID{Client: 2, Seq: 1}, key: "key:1"}
		if _, was, s := other.run(ss, store.Effect{Result: []byte("x")}); s != store.OK || was {
			t.Fatalf("another client: %v, again %v", s, was)
		}
	})
}

// Attempts race with the news that one of them was answered. None is run twice.
func TestAnswersThatRaceWithLateAttemptsLetNoneRunTwice(t *testing.T) {
	forHammerConfigs(t, func(t *testing.T, st *store.Store) {
		stop := disturb(t, st)
		defer stop()
		ops := scale(3000)
		const sessions = 4
		crowd(t, st, sessions, func(ss *store.Session, n int) {
			for i := range ops {
				k := ss.Key(0, []byte("counter"))
				attempt(ss, func() store.Status {
					_, _, s := add(ss, &k, store.OpID{Client: 1, Seq: uint64(i)})
					return s
				})
				ss.Begin()
				ss.Answered(1, uint64(i)) // The others may be at it still.
				ss.End()
			}
		})
		ss := session(t, st)
		if got := readKey(t, ss, 0, []byte("counter")); len(got) != 8 || int(got[0])|int(got[1])<<8 != ops {
			t.Fatalf("%v after %d operations", got, ops)
		}
		if m := st.Metrics(); m.Results > 1+sessions {
			t.Fatalf("%d results are kept", m.Results)
		}
	})
}
