package meta

import (
	"context"
	"time"
)

// MigrationProgress tells people how far a migration has come. Nothing is decided by it.
type MigrationProgress struct {
	ID uint64 `json:"id"`
	// Stage is what its target does: queued, sampling, yielding, pulling, settling, adopting, returning.
	Stage   string `json:"stage"`
	Waiting string `json:"waiting,omitempty"` // for what, if it is
	Records int64  `json:"records,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
	// Total is about how many bytes there are, 0 if nobody knows.
	Total int64 `json:"total,omitempty"`
	// Rate is in bytes a second, of late.
	Rate float64 `json:"rate,omitempty"`
	// Remaining is how many cold records the target only knows of, and still needs the source's log for.
	Remaining     int64     `json:"remaining,omitempty"`
	PriorityPulls int64     `json:"priorityPulls,omitempty"`
	Followed      Followed  `json:"followed,omitzero"`
	Began         time.Time `json:"began"`
	At            time.Time `json:"at"`
}

// Left estimates how long it goes on, 0 if nobody knows.
func (p MigrationProgress) Left() time.Duration {
	if p.Rate <= 0 || p.Total <= p.Bytes {
		return 0
	}
	return time.Duration(float64(p.Total-p.Bytes) / p.Rate * float64(time.Second))
}

// TellMigration shows progress to whoever looks, until the migration has ended.
func (m *Member) TellMigration(ctx context.Context, p MigrationProgress) error {
	return m.change(ctx, func(e *edit) error {
		mig, there := e.seen.Migrations[p.ID]
		if !there || mig.Stage.Ended() || mig.Target != m.Node.ID {
			return nil
		}
		was, told := e.seen.Moves[p.ID]
		was.At, was.Rate = p.At, p.Rate
		if told && was == p {
			return nil
		}
		e.need(keyMigration(p.ID))
		return e.put(keyMove(p.ID), p)
	})
}
