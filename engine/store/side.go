package store

import (
	"context"
	"errors"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// NewSideSession gives a session that writes to side segments; see hlog.Side. It is for
// what brings records that are safe elsewhere: it inserts, and removes nothing. When
// all is brought the session is closed, then the side: that returns when all of it
// is part of the log.
func (st *Store) NewSideSession() (*Session, *hlog.Side, error) {
	side, err := st.log.NewSide()
	if err != nil {
		return nil, nil, err
	}
	ss, err := st.NewSession()
	if err != nil {
		return nil, nil, errors.Join(err, side.Close(st.ctx)) // It has no segments.
	}
	ss.head = side.Head()
	return ss, side, nil
}

// Position is where the log goes on: all that is written from now on is in batches from the
// one returned on, and in side segments from the one returned on. It makes a
// record.Floor, if nothing of its places is in the index.
func (st *Store) Position() (record.BatchID, record.SegmentID) {
	st.log.SealAll()
	return st.log.Last() + 1, st.log.NextID()
}

// SettledPosition is a Position that every later life of the log goes on from, or from a later one: all before it is in all copies. A
// floor that is noted elsewhere is such a one. A loss of power may take batches that have no copies, and their numbers are drawn
// again: what they are given to would lie below a floor that was drawn before.
func (st *Store) SettledPosition(ctx context.Context) (record.BatchID, record.SegmentID, error) {
	batch, segment := st.Position()
	_, err := st.Settle(ctx)
	return batch, segment, err
}

// Oldest is the lowest id among the log's segments. A floor whose segment is not above it
// has nothing below it any more, and may be forgotten.
func (st *Store) Oldest() record.SegmentID { return st.log.Oldest(0) }
