package replica

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
)

// keeper sees to it that every segment has its copies. It is woken when a link fails, the
// members change, or the copier has done something.
//
// A replica is replaced in this order, and a death between any two steps loses
// nothing:
//
//  1. The new replica is opened, does not count yet, and gets all that was sealed.
//     From here on the watermark waits for it as well as for the old one.
//  2. All replicas that shall count get a higher version, by calls.
//  3. The ledger gets that version: the old replica is stale.
//  4. The watermark no longer waits for the old one.
//
// If the old one's queue pair is broken the watermark stands still in between;
// if only its process is silent, writes go on.
type keeper struct {
	news  chan struct{}
	moved chan struct{} // the watermark has moved, though nobody polled

	complained time.Time // when it last told of trouble

	mu      sync.Mutex
	changed chan struct{}
	orders  map[view.NodeID]*sync.Mutex
	dials   map[view.NodeID]*sync.Mutex
}

func (k *keeper) begin() {
	k.news, k.moved = make(chan struct{}, 1), make(chan struct{}, 1)
	k.changed = make(chan struct{})
	k.orders, k.dials = map[view.NodeID]*sync.Mutex{}, map[view.NodeID]*sync.Mutex{}
}

// wake makes the keeper look at everything again. It never waits.
func (k *keeper) wake() { poke(k.news) }

// advanced has the log told that the watermark has moved, by somebody who holds none of its locks.
func (k *keeper) advanced() { poke(k.moved) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// changes returns a channel that is closed when the keeper has changed something.
func (k *keeper) changes() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

func (k *keeper) tell() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.changed)
	k.changed = make(chan struct{})
}

// order keeps closing and raising of a node's replicas apart: what is being closed
// cannot be raised.
func (k *keeper) order(node view.NodeID) *sync.Mutex { return lockOf(&k.mu, k.orders, node) }

// dialing lets one caller at a time link to a node: a link ends the one before it.
func (k *keeper) dialing(node view.NodeID) (unlock func()) {
	m := lockOf(&k.mu, k.dials, node)
	m.Lock()
	return m.Unlock
}

func lockOf(mu *sync.Mutex, all map[view.NodeID]*sync.Mutex, node view.NodeID) *sync.Mutex {
	mu.Lock()
	defer mu.Unlock()
	if all[node] == nil {
		all[node] = new(sync.Mutex)
	}
	return all[node]
}

func (p *Primary) keepLoop(ctx context.Context) {
	var before []Member
	patience := p.o.OpenTimeout
	for {
		m := p.o.Members()
		p.greet(before, m.Living)
		before = m.Living
		err := p.repair(ctx, m, patience)
		if patience = min(2*patience, p.o.CallTimeout); err == nil {
			patience = p.o.OpenTimeout
		}
		var again <-chan time.Time
		switch p.mu.Lock(); {
		case err != nil:
			again = time.After(firstPause)
		case p.books.copies < p.o.Copies:
			again = time.After(time.Second) // Nodes that are left alone for a while may be well again.
		}
		p.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			p.keeper.complain(p.o.Log, p.o.Now(), err)
			rest(ctx, leastPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-m.Changed:
		case <-p.keeper.news:
		case <-again:
		}
	}
}

// leastPause is how long the keeper rests after it failed. Those who wait for it wake it each time
// that it has tried.
const leastPause = 20 * time.Millisecond

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// complain logs trouble, once a second at most. It belongs to the keeper's loop.
func (k *keeper) complain(log *slog.Logger, now time.Time, err error) {
	if now.Sub(k.complained) >= time.Second {
		k.complained = now
		log.Warn("copies of the log are missing; trying again", "error", err)
	}
}

func (p *Primary) advanceLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.keeper.moved:
			p.source.Advanced()
		}
	}
}

// repair brings the copies of all segments to what the members allow.
func (p *Primary) repair(ctx context.Context, m Membership, patience time.Duration) error {
	defer p.keeper.tell()
	p.lapse(m.Living)
	p.cutBroken(ctx, m.Living)
	if err := p.degrade(ctx, m); err != nil {
		return err
	}
	if err := p.replaceOpen(ctx, m, patience); err != nil {
		return err
	}
	p.dropSilent()
	p.copier.wake()
	return errors.Join(p.restore(ctx, m), p.exclude(ctx, m))
}
