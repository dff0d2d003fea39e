package replica

import (
	"encoding/binary"
	"hash/crc32"
	"os"

	"github.com/ostrodb/ostro/engine/record"
)

// A buffer's file begins with two slots, each the header of the buffer at some
// moment; the one with the higher number is the latest. A slot is overwritten only
// while the other one is whole, so whenever a process dies one of them is.
//
//	0  slot 0       4096  slot 1       65536  the replica's bytes
//
// A slot, little-endian:
//
//	 0  8  magic         40  4  state            56  8  batch of the closing seal
//	 8  8  number        44  4  segment bytes    64  4  frozen: 1 if so
//	16  8  log           48  4  end              68  4  CRC-32C of what is before
//	24  8  segment       52  4  sum
//	32  8  version
const (
	bufferMagic = "OSTROBF1"
	slotBytes   = 72
	slotStride  = 4096
	dataOffset  = 64 << 10 // a page border on every machine
)

// bufferState is what a buffer's bytes are.
type bufferState uint32

// A buffer in use goes from creating or open to closed; then, or when its replica is
// dropped, it is dirty until it is zero again.
const (
	bufferFree     bufferState = 1 // zero, all of it
	bufferDirty    bufferState = 2 // to be zeroed
	bufferCreating bufferState = 3
	bufferOpen     bufferState = 4
	bufferClosed   bufferState = 5
)

func (s bufferState) inUse() bool { return s >= bufferCreating }

// bufferHeader is one slot.
type bufferHeader struct {
	number       uint64
	log          record.LogID
	segment      record.SegmentID
	version      uint64
	state        bufferState
	segmentBytes uint32
	closing      Closing // of a closed one; End also of a frozen one
	frozen       bool    // the log is retired, and what lies behind End came too late
}

func (h *bufferHeader) encode() []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, slotBytes), bufferMagic...)
	b = le.AppendUint64(b, h.number)
	b = le.AppendUint64(b, uint64(h.log))
	b = le.AppendUint64(b, uint64(h.segment))
	b = le.AppendUint64(b, h.version)
	b = le.AppendUint32(b, uint32(h.state))
	b = le.AppendUint32(b, h.segmentBytes)
	b = le.AppendUint32(b, h.closing.End)
	b = le.AppendUint32(b, h.closing.Sum)
	b = le.AppendUint64(b, uint64(h.closing.Batch))
	frozen := uint32(0)
	if h.frozen {
		frozen = 1
	}
	b = le.AppendUint32(b, frozen)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decode reports whether b is a whole slot that makes sense.
func (h *bufferHeader) decode(b []byte) bool {
	le := binary.LittleEndian
	if string(b[:8]) != bufferMagic || crc32.Checksum(b[:slotBytes-4], castagnoli) != le.Uint32(b[slotBytes-4:]) {
		return false
	}
	*h = bufferHeader{
		number: le.Uint64(b[8:]), log: record.LogID(le.Uint64(b[16:])), segment: record.SegmentID(le.Uint64(b[24:])),
		version: le.Uint64(b[32:]), state: bufferState(le.Uint32(b[40:])), segmentBytes: le.Uint32(b[44:]),
		closing: Closing{End: le.Uint32(b[48:]), Sum: le.Uint32(b[52:]), Batch: record.BatchID(le.Uint64(b[56:]))},
		frozen:  le.Uint32(b[64:]) == 1,
	}
	return h.state >= bufferFree && h.state <= bufferClosed && h.closing.End <= h.segmentBytes
}

// readHeader returns the latest header of a buffer's file; false if there is none.
func readHeader(f *os.File) (latest bufferHeader, ok bool) {
	for slot := range int64(2) {
		b := make([]byte, slotBytes)
		if _, err := f.ReadAt(b, slot*slotStride); err != nil {
			continue
		}
		var h bufferHeader
		if h.decode(b) && (!ok || h.number > latest.number) {
			latest, ok = h, true
		}
	}
	return latest, ok
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is the CRC-32C by which primary and backup compare segments. It goes piece by piece: a single one of a whole segment
// cannot be interrupted, and on a thread of low priority it would hold up the collector, and all others with it.
func Sum(b []byte) uint32 { return sumSlowly(b, func() {}) }

// sumSlowly is Sum with a rest between two pieces.
func sumSlowly(b []byte, between func()) (sum uint32) {
	for at := 0; at < len(b); at += copyStep {
		sum = crc32.Update(sum, castagnoli, b[at:min(at+copyStep, len(b))])
		between()
	}
	return sum
}
