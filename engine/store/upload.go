package store

import (
	"context"

	"github.com/ostrodb/ostro/engine/record"
)

// blobTier is what the store asks of the shared blob tier.
type blobTier interface {
	ReadAt(ctx context.Context, id record.SegmentID, p []byte, off int64) (int, error)
	Close() error
}

func (st *Store) openBlob(ctx context.Context) error { return nil }

func (st *Store) readRemote(id record.SegmentID, p []byte, off int64) (int, error) {
	return st.blob.ReadAt(context.Background(), id, p, off)
}

func (st *Store) uploadLoop(ctx context.Context) {}
