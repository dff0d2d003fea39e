// Package group is HyperLoop's: operations on the equal memories of a chain of
// replicas, all at once, by their NICs.
//
//	gWRITE   Write   the caller's bytes, at the same offset of every replica
//	gCAS     CAS     compare and swap on the replicas of a map; tells what each found
//	gMEMCPY  Copy    from one offset to another, on every replica by itself
//	gFLUSH   Flush   to the medium; alone, or as Durable behind one of the others
//
// Three ways to do it, chosen by Spec.Mode, with one API:
//   - Chain: replicas' NICs execute what the client describes and pass it on.
//     No replica's processor takes part.
//   - Naive: replicas' programs receive, execute and pass on. It is the baseline.
//   - FanOut: the client drives every replica itself, for fabrics without WAIT.
//
// Invariants:
//   - Every replica executes all operations of a group one after the other, in
//     the order in which the client issued them, however many are in flight and
//     wherever they overlap.
//   - An operation ends well when all replicas have executed it; operations end in order.
//   - On a chain, a replica has executed (and, if Durable, flushed) an operation
//     before the next one hears of it.
//   - A group that fails stays failed: every operation in flight ends with the
//     error, and replicas may or may not have executed it.
package group

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ostrodb/ostro/fabric"
)

// Errors that callers decide on.
var (
	// ErrBroken says that the group has lost a replica, a connection or its NIC.
	ErrBroken = errors.New("group: broken")
	// ErrClosed says that the client has closed the group.
	ErrClosed = errors.New("group: closed")
	// ErrBusy says that a replica is in another group.
	ErrBusy = errors.New("group: busy")
	// ErrRefused says that an operation makes no sense for this group; nothing was done.
	ErrRefused = errors.New("group: refused")
)

// way is how operations reach the replicas.
type way interface {
	// start hands an operation to the NIC. Calls come one at a time, in the order of seq.
	start(seq uint64, o *operation) error
	// take is told of a completion, and tells of the ends of operations. Calls come one at a time.
	take(done fabric.Completion, ended func(seq uint64, found [MaxReplicas]uint64) error) error
}

// Group is the client's end of a group. Its methods may be called by many
// goroutines at once.
type Group struct {
	spec   Spec
	bytes  uint64
	client *client
	way    way
	turns

	room   chan struct{} // an entry per operation in flight
	broken chan struct{} // closed with the first error
	cancel context.CancelFunc
	served chan struct{} // closed when the client's end is
	guards sync.WaitGroup

	order sync.Mutex // one start at a time; guards the client's memory against its end

	mu      sync.Mutex
	issued  uint64
	ended   uint64
	pending []*Pending // by number, modulo the window
	err     error
}

func newGroup(s Spec, bytes uint64, c *client, w way) *Group {
	ctx, cancel := context.WithCancel(context.Background())
	g := &Group{
		spec: s, bytes: bytes, client: c, way: w, turns: newTurns(), cancel: cancel,
		room: make(chan struct{}, s.Window), pending: make([]*Pending, s.Window),
		broken: make(chan struct{}), served: make(chan struct{}),
	}
	go g.serve(ctx)
	g.guards.Go(func() { g.guard(ctx) })
	return g
}

// issue starts an operation when there is room in the window.
func (g *Group) issue(ctx context.Context, o *operation) (*Pending, error) {
	if err := g.enterWindow(ctx); err != nil {
		return nil, err
	}
	g.order.Lock()
	defer g.order.Unlock()
	p, seq, err := g.enter(o)
	if err != nil {
		return nil, err
	}
	if err := g.way.start(seq, o); err != nil {
		g.breakUp(err)
		return nil, g.Err()
	}
	return p, nil
}

// enterWindow waits for room: for the end of the oldest operation, again and again.
func (g *Group) enterWindow(ctx context.Context) error {
	for {
		select {
		case g.room <- struct{}{}:
			return nil
		case <-g.broken:
			return g.Err()
		default:
		}
		if err := g.await(ctx, g.oldest()); err != nil {
			return err
		}
	}
}

// oldest is closed when the next operation ends. One that has room but no number
// yet is not known here: then it is worth another look soon.
func (g *Group) oldest() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended < g.issued {
		return g.pending[g.ended%uint64(len(g.pending))].done
	}
	soon := make(chan struct{})
	time.AfterFunc(time.Millisecond, func() { close(soon) })
	return soon
}

// take is told of a completion.
func (g *Group) take(done fabric.Completion) error {
	if done.Status != fabric.OK {
		return g.client.blame(done)
	}
	if i := g.client.watching(done.QP); i >= 0 {
		return g.client.watched(i, done)
	}
	return g.way.take(done, g.end)
}

// enter gives an operation its number.
func (g *Group) enter(o *operation) (*Pending, uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return nil, 0, g.err
	}
	p := &Pending{g: g, since: time.Now(), done: make(chan struct{}), result: Result{Executed: o.execute}}
	seq := g.issued
	g.pending[seq%uint64(len(g.pending))] = p
	g.issued++
	return p, seq, nil
}

// end ends the oldest operation, which must be seq.
func (g *Group) end(seq uint64, found [MaxReplicas]uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return g.err
	}
	if seq != g.ended || seq >= g.issued {
		return fmt.Errorf("operation %d ended, of %d to %d in flight", seq, g.ended, g.issued)
	}
	p := g.pending[seq%uint64(len(g.pending))]
	p.result.Found = found
	if p.heard {
		g.others.Add(-1)
	}
	close(p.done)
	g.ended++
	<-g.room
	return nil
}

// fail ends everything in flight with the first error that comes.
func (g *Group) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return
	}
	g.err = err
	for ; g.ended < g.issued; g.ended++ {
		p := g.pending[g.ended%uint64(len(g.pending))]
		p.err = err
		close(p.done)
	}
	close(g.broken)
}

// Err tells why the group failed, or nothing while it works.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Broken is closed when the group has failed or was closed.
func (g *Group) Broken() <-chan struct{} { return g.broken }

// Replicas is how many there are.
func (g *Group) Replicas() int { return g.spec.Replicas }

// Membership is the number of replica i's part in this group; the replica knows it, too.
func (g *Group) Membership(i int) uint64 { return g.client.offers[i].ID }

// Bytes is the size of each replica's memory.
func (g *Group) Bytes() uint64 { return g.bytes }

// Close ends the group: operations in flight fail, replicas are let go.
func (g *Group) Close() error {
	g.fail(ErrClosed)
	g.cancel()
	<-g.served
	g.guards.Wait()
	return nil
}

// MaxWrite is the bytes of the longest gWRITE.
func (g *Group) MaxWrite() int { return g.spec.MaxWrite }
