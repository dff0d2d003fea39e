package linearize_test

import (
	"sync"
	"testing"

	"github.com/ostrodb/ostro/test/linearize"
)

func TestAnOperationStandsInTheHistoryBeforeItsAnswer(t *testing.T) {
	h := linearize.NewHistory()
	r := h.Client()
	r.Call(linearize.Op{Object: "x", Act: linearize.Set, Put: "a"})
	if got := h.Ops(); len(got) != 1 || got[0].Return != linearize.Never {
		t.Fatalf("before its answer: %v", got)
	}
	r.Answered("", false)
	if got := h.Ops(); got[0].Return == linearize.Never || got[0].Return < got[0].Call {
		t.Fatalf("after its answer: %v", got)
	}
}

func TestARefusedOperationIsNoPartOfTheHistory(t *testing.T) {
	h := linearize.NewHistory()
	r := h.Client()
	r.Call(linearize.Op{Object: "x", Act: linearize.Set, Put: "a"})
	r.Refused()
	if got := h.Ops(); len(got) != 0 {
		t.Fatalf("got %v", got)
	}
}

func TestAClientWhoseOperationWasLostGoesOnAsAnother(t *testing.T) {
	h := linearize.NewHistory()
	r, other := h.Client(), h.Client()
	for _, c := range []*linearize.Recorder{r, other, r} {
		c.Call(linearize.Op{Object: "x", Act: linearize.Set, Put: "a"})
		c.Lost()
	}
	clients := map[int]bool{}
	for _, o := range h.Ops() {
		clients[o.Client] = true
	}
	if len(clients) != 3 {
		t.Fatalf("three lost operations belong to %d clients", len(clients))
	}
}

func TestClientsRecordAtOnce(t *testing.T) {
	h := linearize.NewHistory()
	var all sync.WaitGroup
	for range 8 {
		r := h.Client()
		all.Go(func() {
			for range 100 {
				r.Call(linearize.Op{Object: "x", Act: linearize.Get})
				r.Answered("", false)
			}
		})
	}
	all.Wait()
	ops := h.Ops()
	for i := range ops[1:] {
		if ops[i].Call > ops[i+1].Call {
			t.Fatal("operations are not in the order of their calls")
		}
	}
	if err := linearize.Check(ops); err != nil || len(ops) != 800 {
		t.Fatalf("%d operations: %v", len(ops), err)
	}
}
