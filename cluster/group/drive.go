package group

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/fabric"
)

// turns decide who takes completions, one goroutine at a time. A waiter that is
// alone does so itself, for that spares a wake-up between two goroutines. When
// there are several, a steward does it for all: handing the turn from one to the
// next would cost a wake-up each time. It also has the turn while nobody waits, so
// that a broken connection is noticed all the same.
//
//	first waiter   takes the turn, polls, sleeps in the queue itself, leaves with its operation
//	others         wait for their operations
//	steward        has the turn while others wait and while all is quiet; else it rests
//
// Invariant: while others wait, somebody has the turn or the steward was called.
type turns struct {
	turn   chan struct{} // full while somebody has it
	call   chan struct{} // for the steward
	taken  atomic.Uint64 // turns of waiters so far
	others atomic.Int32  // who waits without the turn
}

func newTurns() turns {
	return turns{turn: make(chan struct{}, 1), call: make(chan struct{}, 1)}
}

// restFor is how long no waiter may have come before the steward sleeps in the
// completion queue. While it sleeps there, the NIC has to wake it for each completion.
const restFor = 2 * time.Millisecond

// await returns when done is closed, taking completions itself if nobody else does.
func (g *Group) await(ctx context.Context, done <-chan struct{}) error {
	if over(done) {
		return nil
	}
	select {
	case g.turn <- struct{}{}:
		g.taken.Add(1)
		defer g.leave()
		return g.drive(ctx, func() bool { return over(done) })
	default:
	}
	g.others.Add(1)
	defer g.others.Add(-1)
	g.callSteward() // Who has the turn may have left before we were counted.
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func over(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// leave gives the turn back.
func (g *Group) leave() {
	<-g.turn
	if g.others.Load() > 0 {
		g.callSteward()
	}
}

func (g *Group) callSteward() {
	select {
	case g.call <- struct{}{}:
	default:
	}
}

// hear makes sure that somebody takes the completion of an operation.
func (g *Group) hear(p *Pending) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !p.heard && !over(p.done) {
		p.heard = true
		g.others.Add(1)
	}
	g.callSteward()
}

// drive takes completions until it is enough, the caller gives up or the group
// breaks; then everything in flight has ended. The caller has the turn.
func (g *Group) drive(ctx context.Context, enough func() bool) error {
	var batch [64]fabric.Completion
	for !enough() {
		n := g.client.cq.Poll(batch[:])
		if n == 0 {
			if err := g.client.cq.Wait(ctx); err != nil {
				return g.giveUp(ctx, err)
			}
		}
		for _, done := range batch[:n] {
			if err := g.take(done); err != nil {
				g.breakUp(err)
				return nil
			}
		}
	}
	return nil
}

// giveUp tells the end of the caller's patience from that of the group.
func (g *Group) giveUp(ctx context.Context, err error) error {
	if own := ctx.Err(); own != nil && errors.Is(err, own) {
		return own
	}
	g.breakUp(err)
	return nil
}

func (g *Group) breakUp(err error) {
	g.fail(fmt.Errorf("%w: %w", ErrBroken, err))
	g.cancel()
}

// serve is the steward: it takes completions while nobody waits, until the group
// fails, and then lets go of the replicas.
func (g *Group) serve(ctx context.Context) {
	defer close(g.served)
	for ctx.Err() == nil {
		select {
		case g.turn <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		took := false
		_ = g.drive(ctx, func() bool {
			if took {
				runtime.Gosched() // Waiting polls first; who waits for what was taken goes before that.
			}
			enough := took && g.others.Load() == 0
			took = true
			return enough
		})
		<-g.turn
		g.rest(ctx)
	}
	g.client.stopped.Store(true)
	g.order.Lock()
	defer g.order.Unlock()
	_ = g.client.fence()
	g.turn <- struct{}{} // For good: who had it leaves, for its queue is closed.
	_ = g.client.free()
}

// rest waits until nobody else takes completions any more, or somebody calls.
func (g *Group) rest(ctx context.Context) {
	timer := time.NewTimer(restFor)
	defer timer.Stop()
	for {
		seen := g.taken.Load()
		select {
		case <-g.call:
			return
		case <-ctx.Done():
			return
		case <-timer.C:
			if g.taken.Load() == seen && len(g.turn) == 0 {
				return
			}
			timer.Reset(restFor)
		}
	}
}
