package ostropebble

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// applyBatch applies a batch of the front end's to a replica's own database.
func applyBatch(db *pebble.DB, repr []byte) error {
	if len(repr) >= 8 {
		clear(repr[:8]) // The sequence number was the front end's.
	}
	b := db.NewBatch()
	if err := b.SetRepr(repr); err != nil {
		return fmt.Errorf("pebble: a batch of the replicated log makes no sense: %w", err)
	}
	if b.Empty() {
		return b.Close()
	}
	if err := db.Apply(b, pebble.NoSync); err != nil {
		return fmt.Errorf("pebble: apply a replicated batch: %w", err)
	}
	return b.Close()
}
