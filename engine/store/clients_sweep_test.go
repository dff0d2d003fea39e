package store

import (
	"sync"
	"testing"
	"time"
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
		cs.note(OpID{1, 1}, receipt{seq: 1, until: until}, now, nil)
		both.Wait()
		if kept := cs.kept(whole, now); len(kept) != 1 {
			t.Fatalf("round %d: %d operations are known", round, len(kept))
		}
	}
}

// That a client has answers is known for longer than results are kept, whatever it runs next.
func TestWhatAClientRunsNextMakesNobodyForgetWhatItHas(t *testing.T) {
	var cs clients
	cs.heard(1, 20, nil).mu.Unlock()
	cs.note(OpID{1, 1}, receipt{seq: 1, until: 10}, 0, nil)
	if cs.sweep(15); cs.of(1, nil).until.Load() != 20 {
		t.Error("it is forgotten with its last result")
	}
}

// Whoever is charged for results gets it all back: when they are confirmed, when their time is over, and with the client.
func TestWhatIsKeptOfClientsIsPaidForAndGivenBack(t *testing.T) {
	const each = 100
	worth := func(clients, receipts int64) int64 { return clients*clientBytes + receipts*(receiptBytes+each) }
	var cs clients
	var anna, bert Payer
	note := func(who *Payer, client, seq uint64, now int64) {
		cs.note(OpID{client, seq}, receipt{seq: seq, until: now + 10, bytes: each}, now, who)
	}
	paid := func(when string, a, b int64) {
		t.Helper()
		if anna.Bytes() != a || bert.Bytes() != b {
			t.Errorf("%s: %d and %d bytes, want %d and %d", when, anna.Bytes(), bert.Bytes(), a, b)
		}
	}
	for seq := range uint64(5) {
		note(&anna, 1, seq, 0)
	}
	note(&anna, 2, 0, 0)
	note(&bert, 3, 0, 5)
	note(nil, 4, 0, 0)
	paid("after 7 operations", worth(2, 6), worth(1, 1))
	cs.of(1, nil).take(3)
	paid("after 3 were confirmed", worth(2, 3), worth(1, 1))
	note(&anna, 1, 5, 12)
	paid("after those before were over", worth(2, 2), worth(1, 1))
	cs.of(1, nil).until.Store(100)
	cs.sweep(12)
	paid("after the second client was forgotten", worth(1, 1), worth(1, 1))
	cs.sweep(30)
	paid("after the last result was over", worth(1, 0), 0)
	cs.sweep(100)
	paid("after all", 0, 0)
}

// Who was told until when something is remembered need not say it again before, whatever the client does meanwhile.
func TestWhatWasAnsweredIsRememberedForAsLongAsIsSaid(t *testing.T) {
	const id, below, start, keep = 7, 5, 1_000_000, 1000
	st, err := Open(Options{Now: func() int64 { return start }, KeepResults: keep * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	ss.Begin()
	defer ss.End()
	until := ss.Answered(id, below)
	if until <= start {
		t.Fatalf("it is remembered until %d, and it is %d", until, start)
	}
	st.clients.note(OpID{id, below}, receipt{seq: below, until: start + keep}, start, nil)
	if again := ss.Answered(id, below-1); again > until {
		t.Errorf("it is said again, and remembered until %d instead of %d", again, until)
	}
	if st.clients.sweep(until - 1); !st.clients.isAnswered(OpID{id, below - 1}) {
		t.Error("it was forgotten before the time that was said")
	}
	if st.clients.sweep(start + 2*keep); st.clients.isAnswered(OpID{id, below - 1}) {
		t.Error("it is never forgotten")
	}
	if ss.Answered(id, below); !st.clients.isAnswered(OpID{id, below - 1}) {
		t.Error("it was said again, and is not remembered")
	}
}
