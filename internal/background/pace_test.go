package background

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAFewAtATimeRunInTurn(t *testing.T) {
	for name, inTurn := range map[string]func(func(rest func())){"paced": InTurn, "humble": InTurnHumbly} {
		t.Run(name, func(t *testing.T) {
			var running, most, ran atomic.Int32
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					inTurn(func(rest func()) {
						now := running.Add(1)
						for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
						}
						rest()
						ran.Add(1)
						running.Add(-1)
					})
				})
			}
			all.Wait()
			if ran.Load() != 50 || int(most.Load()) > atOnce {
				t.Errorf("%d ran, %d at a time; %d may", ran.Load(), most.Load(), atOnce)
			}
		})
	}
}

func TestPacedWorkDoesNotWaitForThoseWhoAreHumble(t *testing.T) {
	over, begun := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			InTurnHumbly(func(func()) {
				begun <- struct{}{}
				<-over
			})
		})
		<-begun
	}
	InTurn(func(func()) {})
	close(over)
	all.Wait()
}

func TestCourtesyHasAnEnd(t *testing.T) {
	var c courtesy
	for range 10 * courteousPieces {
		c.rest()
	}
	if c.given == 0 {
		t.Error("it let nobody go first")
	}
	c.given = courteous
	for range 10 * courteousPieces {
		c.rest()
	}
	if c.given != courteous {
		t.Error("it lets others go first forever")
	}
}

func TestWhatHasNotWorkedForLongDoesNotRest(t *testing.T) {
	soon := time.Now().Add(time.Hour) // It has begun, and worked for nothing yet.
	p := Pace{since: soon}
	p.Rest()
	if p.since != soon {
		t.Error("it rested")
	}
	began := time.Now().Add(-stint)
	p.since = began
	p.Rest()
	if !p.since.After(began) {
		t.Error("it did not rest")
	}
}

func TestWorkRestsForAsLongAsItIsToldTo(t *testing.T) {
	half, twice := Pace{}, Pace{Idle: 2}
	const worked = 500 * time.Microsecond
	if got := half.after(worked); got != worked/2 {
		t.Errorf("after half a millisecond it rests for %v, want half of that", got)
	}
	if got := twice.after(worked); got != 2*worked {
		t.Errorf("after half a millisecond it rests for %v, want twice that", got)
	}
	if got := twice.after(time.Minute); got != longest {
		t.Errorf("after a minute it rests for %v", got)
	}
	half.since = time.Now().Add(-worked)
	if half.Rest(); half.Rested <= 0 {
		t.Error("a rest was not counted")
	}
	twice.since = time.Time{}
	if twice.Skip(); twice.since.IsZero() {
		t.Error("what was before a rest that it skipped counts for the next")
	}
}
