package replica

import (
	"context"
	"sync/atomic"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// NameOf is the name of a replica's file.
func NameOf(log record.LogID, id record.SegmentID) string { return replicaName(log, id) }

// Answerers calls a backup's handlers without a network.
func Answerers(b *Backup) map[string]func(context.Context, *peer.Call) {
	all := map[string]func(context.Context, *peer.Call){}
	for name, h := range map[string]peer.Handler{
		MethodConnect: b.onConnect, MethodOpen: b.onOpen, MethodAppend: b.onAppend, MethodClose: b.onClose,
		MethodRaise: b.onRaise, MethodPut: b.onPut, MethodRoster: b.onRoster, MethodForget: b.onForget,
		MethodSurvey: b.onSurvey, MethodFetch: b.onFetch, MethodHealth: b.onHealth,
	} {
		all[name] = func(ctx context.Context, c *peer.Call) { _, _, _ = h(ctx, c) }
	}
	return all
}

// NewCall is a call that nobody made.
func NewCall(from view.NodeID, head, bulk []byte) *peer.Call {
	return peer.NewCall(from, head, bulk, func(any, []byte) error { return nil })
}

// Pin reads a replica until release.
func (b *Backup) Pin(log record.LogID, id record.SegmentID) (release func(), err error) {
	r, err := b.replicaOf(log, id)
	if err != nil {
		return nil, err
	}
	h, err := r.pin()
	return h.release, err
}

// Read is a fetch that lasts until end is called.
func (b *Backup) Read() (end func()) {
	b.reading <- struct{}{}
	return b.endTurn
}

// MayFlush tells whether closed replicas are flushed now.
func (b *Backup) MayFlush() bool { return b.mayFlush() }

// Shelved is how many segments are kept in memory for further heirs.
func (b *Backup) Shelved() int {
	b.shelf.mu.Lock()
	defer b.shelf.mu.Unlock()
	return len(b.shelf.list)
}

// Looking has f called while a replica that is to be closed is looked at, once.
func (b *Backup) Looking(f func()) {
	var called atomic.Bool
	b.looking = func() {
		if called.CompareAndSwap(false, true) {
			f()
		}
	}
}
