package replica

import (
	"context"
	"errors"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/engine/record"
)

// MethodDiscard drops replicas that were opened for nothing: DiscardRequest → nothing.
const MethodDiscard = "replica.discard"

// DiscardRequest names open replicas that no copy counts on, as when the primary did
// not hear in time that they were opened, and asked another backup. Closed ones
// stay. It can be repeated.
//
// One may come late: nobody waits for its answer any more, the replica was opened again, and copies count on it.
// So it drops only what was opened by requests of lower numbers. Or it may come early, and the request to open after it, as
// when the backup was held up with both at hand: that opens nothing any more.
type DiscardRequest struct {
	Log      record.LogID       `json:"log"`
	Segments []record.SegmentID `json:"segments"`
	Number   uint64             `json:"number,omitempty"`
}

func (b *Backup) onDiscard(_ context.Context, c *peer.Call) (any, []byte, error) {
	var q DiscardRequest
	if err := c.Bind(&q); err != nil {
		return nil, nil, err
	}
	l, err := b.writable(q.Log, c.From)
	if err != nil {
		return nil, nil, err
	}
	defer l.mu.Unlock()
	var errs []error
	for _, id := range q.Segments {
		l.discarded[id] = max(l.discarded[id], q.Number)
		if r := l.replicas[id]; r != nil && r.state != StateClosed && r.opened <= q.Number {
			errs = append(errs, r.drop())
		}
	}
	return nil, nil, errors.Join(errs...)
}
