package migrate

import (
	"context"
	"testing"
)

func TestARingIsHeardOnceByWhoListens(t *testing.T) {
	var b bell
	b.hang()
	defer b.takeDown()
	b.ring() // Nobody listens: nobody is to hear it later.
	if b.listen(func() bool { return false }) {
		t.Error("a ring from before is heard")
	}
	twice := func() bool { b.ring(); b.ring(); return false }
	if !b.listen(twice) {
		t.Error("a ring is not heard")
	}
	if b.listen(func() bool { return false }) {
		t.Error("a ring is heard again")
	}
}

func TestABellThatWasTakenDownIsNeitherHeardNorListenedTo(t *testing.T) {
	var b bell
	b.listen(func() bool { t.Error("somebody listens to what is not there"); return true })
	b.hang()
	b.takeDown()
	b.takeDown()
	b.listening.Store(true)
	b.ring()
	b.listen(func() bool { t.Error("somebody listens to what is not there"); return true })
}

// Keys come one by one, each when the one before it was taken: none may be missed, whichever way who takes them waits.
func TestNoKeyIsMissedByWhoListensForThem(t *testing.T) {
	p := newPriority()
	p.bell.hang()
	const n = 2000
	taken := make(chan int, n)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			batch := p.take(ctx)
			if batch == nil {
				return
			}
			p.granted(batch)
			taken <- len(batch)
		}
	}()
	for i := range n {
		p.want(arriving(i), func(error) {})
		if i%3 > 0 {
			for got := 0; got < 1; {
				got += <-taken
			}
		}
	}
	for p.waiting() > 0 {
		<-taken
	}
	cancel()
	p.bell.ring()
	<-over
	p.bell.takeDown()
}
