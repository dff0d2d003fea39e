package ring

import (
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

func TestQueuesOfAPairDoNotOverlap(t *testing.T) {
	p := NewPair(mapped(t, PairBytes(4, 8)), 4, 8)
	for i := range uint64(4) {
		p.Send.Put(i, &fabric.WR{ID: 100 + i, Op: fabric.OpNop})
	}
	for i := range uint64(8) {
		p.Recv.Put(i, &fabric.WR{ID: 200 + i, Op: fabric.OpRecv, Unowned: true})
	}
	p.Send.Publish(4)
	p.Recv.Publish(8)
	p.SetState(fabric.Failed)
	var w fabric.WR
	for i := range uint64(4) {
		if p.Send.Get(i, &w); w.ID != 100+i || !p.Send.Owned(i) {
			t.Errorf("send %d: %+v", i, w)
		}
	}
	for i := range uint64(8) {
		if p.Recv.Get(i, &w); w.ID != 200+i || p.Recv.Owned(i) {
			t.Errorf("recv %d: %+v", i, w)
		}
	}
	if p.Send.Tail() != 4 || p.Recv.Tail() != 8 || p.State() != fabric.Failed {
		t.Error("words overlap")
	}
}

func TestCompletionsComeOutInOrderAcrossTheEdge(t *testing.T) {
	c := NewCompletions(mapped(t, CompletionsBytes(4)), 4)
	var into [3]fabric.Completion
	next := uint64(0)
	for i := range uint64(50) {
		c.Push(i, &fabric.Completion{ID: i})
		if i%3 != 2 {
			continue
		}
		for _, got := range into[:c.Take(into[:])] {
			if got.ID != next {
				t.Fatalf("got %d, want %d", got.ID, next)
			}
			next++
		}
	}
	if next != 48 || c.Produced() != 50 || c.Consumed() != 48 {
		t.Fatalf("took %d of %d", next, c.Produced())
	}
}

func TestASleeperIsWokenByAPush(t *testing.T) {
	c := NewCompletions(mapped(t, CompletionsBytes(4)), 4)
	go c.Push(0, &fabric.Completion{ID: 5})
	for c.Produced() == 0 {
		c.SleepAt(0)
	}
}

func TestEveryBellIsHeardOnce(t *testing.T) {
	d := NewDoorbells(mapped(t, DoorbellsBytes))
	want := []uint32{0, 1, 63, 64, Bells - 1}
	for _, b := range want {
		if d.Ring(b) {
			t.Error("nobody sleeps")
		}
	}
	var got []uint32
	d.Take(Bells/64, func(b uint32) { got = append(got, b) })
	d.Take(Bells/64, func(b uint32) { t.Errorf("%d was heard twice", b) })
	if len(got) != len(want) || got[4] != Bells-1 || !d.Silent(Bells/64) {
		t.Fatalf("heard %v", got)
	}
	if d.SetAsleep(true); !d.Ring(9) || d.Silent(Bells/64) {
		t.Error("a sleeper needs the event")
	}
}

// A NIC that finds a sleeper may take a moment to wake it. Meanwhile that has taken the completion, has armed again, and has looked
// for the last time: it must not sleep through all that follows, for the NIC takes it for awake.
func TestAWakeThatComesBeforeTheSleepEndsIt(t *testing.T) {
	c := NewCompletions(mapped(t, CompletionsBytes(4)), 4)
	c.Push(0, &fabric.Completion{ID: 5})
	c.arm()
	if c.Produced() != 1 {
		t.Fatal("it would not sleep")
	}
	c.Wake()
	if !c.sleepArmed() {
		t.Error("it slept until its time was over")
	}
}
