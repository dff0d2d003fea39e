package store

import (
	"golang.org/x/sys/cpu"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// canLeap tells whether leap works here.
var canLeap = cpu.X86.HasPCLMULQDQ && cpu.X86.HasBMI2

// leap finds the plain record of a key of eight bytes in memory, and the state of
// its segment from before it looked at it; word is the index's, see index.AddressIn. The
// state is free, which can neither be read nor written, if it did not find it: there is
// none, or it takes more than a look.
//
// It is Name, First, See and PlainKeyIs in one piece. A processor looks a few
// hundred instructions ahead. The fewer an operation takes, the more of those
// that follow can wait for memory beside it: this is half as many, and on data that
// fits no cache twice as fast.
//
//go:noescape
func leap(ss *Session, t *table, key uint64) (p record.Ptr, word uint64, state uint32)

//lint:file-ignore U1000 The assembler reads these.

// What leap knows of others' bytes.
const (
	leapKindBits  = index.DirectoryBits
	leapBuckets   = index.BucketBytes
	leapBucket    = index.BucketMask
	leapTags      = index.BucketTags
	leapTagBytes  = index.TagBytes
	leapMeta      = index.BucketMeta
	leapLocked    = index.WordLocked
	leapOffset    = record.MaxSegmentBytes - 8
	leapState     = hlog.SlotState
	leapPlainMask = record.PlainMask8
	leapPlain     = record.PlainFront8
	leapOf        = record.TableOffset
	leapKey       = record.HeaderBytes
)

// It also shifts by what follows from these.
const (
	_ = uint(index.BucketBytes-1<<6) + uint(1<<6-index.BucketBytes)
	_ = uint(hlog.SlotBytes-1<<4) + uint(1<<4-hlog.SlotBytes)
	_ = uint(record.MaxSegmentBytes-1<<23) + uint(1<<23-record.MaxSegmentBytes)
	_ = uint(record.MaxSlots-1<<25) + uint(1<<25-record.MaxSlots)
)
