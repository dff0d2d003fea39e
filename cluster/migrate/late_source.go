package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
)

// The calls of a migration with late ownership.
const (
	methodCopy     = "migrate.copy"
	methodChanges  = "migrate.changes"
	methodHandOver = "migrate.handover"
)

// copyBegun answers methodCopy: changes are noted from now on.
type copyBegun struct {
	Token uint64 `json:"token"` // A source that forgot what it noted, or notes for another attempt, has another one.
	Bytes int64  `json:"bytes"`
}

// changes asks for what has changed since the last time.
type changes struct {
	ID    ID     `json:"id"`
	Token uint64 `json:"token"`
	Last  bool   `json:"last,omitempty"` // The source is to serve no more.
}

// changed is the end of the answer. The parts before it are entries.
type changed struct {
	Keys int `json:"keys"`
	// Ceiling is no lower than any version of the ranges at the source, if that was the last.
	Ceiling uint64 `json:"ceiling,omitempty"`
}

// handOver says that the target has everything.
type handOver struct {
	ID     ID          `json:"id"`
	Token  uint64      `json:"token"`
	Copied meta.Copied `json:"copied"`
}

// LateOrigin is the node that a Source answers for, when the target copies what it serves.
type LateOrigin interface {
	// Depart begins to note which keys of a migration change, and forgets what it noted for it before.
	Depart(ctx context.Context, id ID, target view.NodeID) (m meta.Migration, token uint64, err error)
	// Changes takes what was noted. For the last time: nobody executes on the ranges then, and all that was
	// executed is in every copy of the log; if the target says nothing for long, they are served again.
	Changes(ctx context.Context, id ID, target view.NodeID, token uint64, last bool) (meta.Migration, []store.ArrivingKey, error)
	// HandOver gives the ranges away, and returns when it is known whether that was done.
	HandOver(ctx context.Context, id ID, target view.NodeID, token uint64, c meta.Copied) error
}

// copy begins to note changes.
func (s *Source) copy(ctx context.Context, c *peer.Call) (any, []byte, error) {
	var ask transfer
	if err := c.Bind(&ask); err != nil {
		return nil, nil, err
	}
	m, token, err := s.origin.Depart(ctx, ask.ID, c.From)
	if err != nil {
		return nil, nil, err
	}
	shelf, err := s.origin.Shelf()
	if err != nil {
		return nil, nil, err
	}
	if err := shelf.enter(); err != nil {
		return nil, nil, err
	}
	defer shelf.leave()
	return copyBegun{Token: token, Bytes: shelf.bytesOf(m.Ranges)}, nil, nil
}

// changes sends what has changed, and with the last of it the results of operations.
func (s *Source) changes(ctx context.Context, c *peer.Call) (any, []byte, error) {
	var ask changes
	if err := c.Bind(&ask); err != nil {
		return nil, nil, err
	}
	m, keys, err := s.origin.Changes(ctx, ask.ID, c.From, ask.Token, ask.Last)
	if err != nil {
		return nil, nil, err
	}
	shelf, leave, err := s.shelfFor(c)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	if err := shelf.sendChanges(ctx, c, keys); err != nil {
		return nil, nil, err
	}
	end := changed{Keys: len(keys)}
	if !ask.Last {
		return end, nil, nil
	}
	end.Ceiling = shelf.store.Ceiling()
	return end, nil, sendCompletions(ctx, c, shelf.store, m.Ranges)
}

// handOver gives the ranges away.
func (s *Source) handOver(ctx context.Context, c *peer.Call) (any, []byte, error) {
	var ask handOver
	if err := c.Bind(&ask); err != nil {
		return nil, nil, err
	}
	return nil, nil, s.origin.HandOver(ctx, ask.ID, c.From, ask.Token, ask.Copied)
}

// sendChanges sends what keys are now in parts of an answer.
func (s *Shelf) sendChanges(ctx context.Context, c *peer.Call, keys []store.ArrivingKey) error {
	r, err := s.borrow(&s.urgent)
	if err != nil {
		return err
	}
	defer s.giveBack(r, &s.urgent)
	for at, more := (store.PullCursor{}), len(keys) > 0; more; {
		var part []byte
		r.ss.Begin()
		next, st := r.ss.PullChanges(keys, at, partBytes, func(entry []byte) { part = append(part, entry...) })
		r.ss.End()
		switch st {
		case store.OK:
			more = next != (store.PullCursor{})
		case store.Cold:
			err = r.ss.Fetch(ctx)
		default:
			err = errors.Join(fmt.Errorf("read what has changed: %v", st), r.ss.Err())
		}
		if err == nil && len(part) > 0 {
			err = c.Send(changed{}, part)
		}
		if err != nil {
			return err
		}
		at = next
	}
	return nil
}
