package hlog

import (
	"context"

	"github.com/ostrodb/ostro/engine/record"
)

// Replicator keeps copies of a logged log elsewhere. The log hands it batches;
// nothing counts as durable before it says that all copies have it.
//
//	Begin ── Open (in the background, before a head needs the segment)
//	           └─ Sealed, Sealed, ..., Sealed(closed)
//	                                    └─ Drop (its records live elsewhere by now)
//
// Invariants:
//   - A segment is open everywhere before the first byte is written to it. A head
//     that goes on in another has it open before the closing seal of the one that
//     it leaves; one that is made to leave for other reasons, as by a checkpoint or
//     by the end of the log, may have no successor for a while.
//   - No id is ever given to two segments of a log, not over its lives either.
//   - The memory of a segment stays where it is until the watermark has passed
//     its closing seal.
//   - A segment's file is removed, and tombstones of its records are dropped, only
//     after Drop has returned: a copy that still counted would bring them back.
type Replicator interface {
	// Begin is called once, before the log's first append and outside of all
	// locks. It returns when all that the source has from a former life is
	// copied: until then nothing of it may be shown. The watermark is at
	// least Source.Last then.
	Begin(ctx context.Context, s Source) error
	// Open makes room for copies of a segment. It may wait; memory is the whole
	// segment as the head will fill it. Two may be opened at once. One that
	// failed is tried again, or dropped.
	Open(ctx context.Context, id record.SegmentID, memory []byte) error
	// Sealed says that the bytes from from to to of an open segment end in the
	// seal of batch n, and closed, that this is its last. It is called under the
	// head's lock, in order for a segment but not over segments, and never waits.
	Sealed(id record.SegmentID, from, to uint32, n record.BatchID, closed bool)
	// Adopt takes side segments for part of the log: they are closed, were never opened here, and
	// none of their batches has a number. When it returns they have as many copies as all others, and
	// every recovery finds them. One that failed is tried again, or dropped; what
	// was copied by then may be found or not.
	Adopt(ctx context.Context, segs ...SourceSegment) error
	// Watermark is the batch up to which all are in every copy. It only grows.
	Watermark() record.BatchID
	// Drop says that segments are no longer part of the log. When it returns no
	// recovery takes them for one. Spares that were never written are dropped, too,
	// even those that could not be opened, and some perhaps twice. It is called
	// outside of all locks of a head.
	Drop(ctx context.Context, ids ...record.SegmentID) error
	// Close ends it: no memory of the log is read after it. The copies stay. It is
	// called once, also if Begin failed or was never called.
	Close() error
}

// Source is what a Replicator needs of its log.
type Source struct {
	LogID        record.LogID
	SegmentBytes int
	// Heads is how many segments may be appended to at once, the cleaner's included.
	Heads int
	// Segments are those of a former life, all of them closed, by increasing id.
	Segments []SourceSegment
	// Last is the last batch of them.
	Last record.BatchID
	// Load gives the bytes of a closed segment, of this life or a former one, to make
	// another copy of it. ErrGone: it was dropped meanwhile.
	Load func(id record.SegmentID) ([]byte, error)
	// Free takes back what Load gave, if nobody reads it any more. It need not be called, and may be nil: but
	// segments are large, and what is garbage has the collector stop everybody.
	Free func(b []byte)
	// Advanced is to be called when the watermark has moved, by anybody. It is quick,
	// and does nothing if somebody else was faster.
	Advanced func()
	// Failed is to be called when copies can never be made again, as when this
	// node was deposed: whoever waits for the watermark is sent away.
	Failed func(error)
}

// SourceSegment is a closed segment.
type SourceSegment struct {
	ID    record.SegmentID
	End   uint32
	Batch record.BatchID // of its closing seal
	// Bytes are its bytes up to End, in memory that stays until Adopt returns. Nil: Load gives them.
	Bytes []byte
}
