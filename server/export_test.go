package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/library"
)

// Shelf is what a tenant has installed, by what the node knows; nil while it knows no such tenant.
func (n *Node) Shelf(name string) *library.Shelf {
	account := n.tenants.Load().Account(name)
	if account == nil && name != tenant.Operator {
		return nil
	}
	return n.functions.Load().Shelf(account)
}

// NobodyElse tells whether nobody is left who could have more of a log.
var NobodyElse = nobodyElse

// Membership is who may hold copies of a log.
var Membership = membership

// Engine is the node's store, as long as it serves.
func (n *Node) Engine() *store.Store { return n.store.Load() }

// Retract drops ranges that were seen to be others'.
func (n *Node) Retract(ctx context.Context, gone view.Ranges) error {
	return n.cluster.life.Load().drop(ctx, gone)
}

// HoldReplays keeps the node from replaying anything that it inherits until it is called again.
func (n *Node) HoldReplays() (letGo func()) {
	l := n.cluster.life.Load()
	l.taking.Lock()
	return l.taking.Unlock
}

// Drop ends a node as a kill does: nothing is said to anybody, its lease ends by itself, and its
// store has what lies in its files.
func (n *Node) Drop() {
	_ = n.cluster.meta.Close()
	n.end()
}

// Depose has the node believe that others have its log.
func (n *Node) Depose() { n.cluster.life.Load().cancel(errRetired) }

// Isolate cuts a node off from etcd for good: it goes on, and is deposed.
func (n *Node) Isolate() { _ = n.cluster.meta.Close() }

// Forsake is Drop with a lease that goes on for as long as it would after a kill, and not until the
// node has given up to give it back.
func (n *Node) Forsake() {
	l := n.cluster.life.Load()
	m := l.gate.member.Swap(nil)
	_ = n.cluster.meta.Close()
	go func() { // It renews no more. etcd is out of its reach.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = m.Lease.Close(ctx)
	}()
	n.end()
}

func (n *Node) end() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = n.cluster.stop(ctx, false)
	if n.admin != nil {
		_ = n.admin.Close(ctx)
	}
}

// ForClients is the part of a stop that clients have.
var ForClients = forClients

// SlotMover moves slots as a node does that Redis' tools tell to.
type SlotMover = slotMover

// NewSlotMover makes one that knows what cache does.
func NewSlotMover(ctx context.Context, self view.NodeID, store *meta.Store, cache *meta.Cache, log *slog.Logger) *SlotMover {
	return &slotMover{self: self, meta: store, cache: cache, log: log, ctx: ctx}
}

// MoveSeen moves slots by what an older snapshot says. Again: others have moved a part meanwhile.
func (m *slotMover) MoveSeen(ctx context.Context, s *meta.Snapshot, to view.NodeID, ranges view.Ranges) (again bool, err error) {
	return m.moveSeen(ctx, s, to, ranges)
}

// MoveAll moves slots, whatever others do meanwhile.
func (m *slotMover) MoveAll(ctx context.Context, to view.NodeID, ranges view.Ranges) error {
	return m.moveAll(ctx, to, ranges)
}

// Doubt has the mover look after slots that it was told of long ago.
func (m *slotMover) Doubt(to view.NodeID, then *meta.Snapshot, slots ...uint16) {
	told := map[uint16]*meta.Snapshot{}
	for _, s := range slots {
		told[s] = then
	}
	m.doubt(to, told)
}
