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
// stay, and so do segments in the roster. It can be repeated.
type DiscardRequest struct {
	Log      record.LogID       `json:"log"`
	Segments []record.SegmentID `json:"segments"`
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
		if r := l.replicas[id]; r != nil && r.state != StateClosed {
			errs = append(errs, r.drop())
		}
	}
	return nil, nil, errors.Join(errs...)
}
