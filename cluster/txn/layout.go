package txn

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// The memory of each replica:
//
//	  0  8  magic; zero is memory that was never formatted, or whose copy is not complete
//	  8  4  version
//	 12  4  locks
//	 16  8  bytes of the log
//	 24  8  bytes of the memory
//	 32  8  group: random, of the formatting
//	 40 20  zero
//	 60  4  CRC-32C of bytes 8 to 59
//	 64  8  epoch: number in the upper half, random in the lower
//	 72  8  next: the epoch that its client is about to begin
//	 80  8  gate: while the replica's own readers may read, the number of its part in the group, else zero
//	 88  8  head: position of the oldest record that was not executed here
//	 96 32  zero
//	128     locks, 8 bytes each
//	        log, from the next multiple of 64
//	        data, from the next multiple of 4096, to the end
//
// Words from 64 on, and the magic, change by compare-and-swap only: no cut leaves half of one.
const (
	magic         = 0x314e58544f525453 // "STROTXN1"
	version       = 1
	magicAt       = 0
	epochAt       = 64
	nextAt        = 72
	gateAt        = 80
	headAt        = 88
	locksAt       = 128
	headerBytes   = 64
	controlBytes  = 128
	wordBytes     = 8
	logAlignment  = 64
	dataAlignment = 4096
	maxLocks      = 1 << 20
	minLog        = 256
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// layout is where things lie.
type layout struct {
	locks    int
	logBytes uint64
	memory   uint64
	group    uint64
}

func (l layout) lock(i int) uint64 { return locksAt + uint64(i)*wordBytes }
func (l layout) log() uint64       { return roundUp(l.lock(l.locks), logAlignment) }
func (l layout) data() uint64      { return roundUp(l.log()+l.logBytes, dataAlignment) }
func (l layout) dataBytes() uint64 { return l.memory - l.data() }

func roundUp(n, to uint64) uint64 { return (n + to - 1) &^ (to - 1) }

// span is a piece of a replica's memory.
type span struct{ off, n uint64 }

// ring says where n bytes of the log from a position on lie: in one piece, or in
// two around the end.
func (l layout) ring(pos, n uint64) []span {
	at := pos % l.logBytes
	first := min(n, l.logBytes-at)
	spans := []span{{l.log() + at, first}}
	if first < n {
		spans = append(spans, span{l.log(), n - first})
	}
	return spans
}

// plan makes the layout that a Config wants for memory of a size.
func (c Config) plan(memory uint64) (layout, error) {
	l := layout{locks: c.Locks, logBytes: c.LogBytes, memory: memory}
	if l.locks == 0 {
		if l.locks = 1024; memory < 1<<20 {
			l.locks = 64
		}
	}
	if l.logBytes == 0 {
		l.logBytes = min(memory/4, 16<<20) &^ (logAlignment - 1)
	}
	return l, l.check()
}

func (l layout) check() error {
	switch {
	case l.locks < 1 || l.locks > maxLocks:
		return fmt.Errorf("%w: %d locks; want 1 to %d", ErrRefused, l.locks, maxLocks)
	case l.logBytes < minLog || l.logBytes%logAlignment != 0 || l.logBytes > l.memory:
		return fmt.Errorf("%w: a log of %d bytes in a memory of %d; want a multiple of %d, at least %d, that fits",
			ErrRefused, l.logBytes, l.memory, logAlignment, minLog)
	case l.data() >= l.memory:
		return fmt.Errorf("%w: %d locks and a log of %d bytes leave no data in a memory of %d; make the log smaller",
			ErrRefused, l.locks, l.logBytes, l.memory)
	}
	return nil
}

// header is the bytes from the version on to the checksum.
func (l layout) header() []byte {
	b := make([]byte, headerBytes-wordBytes)
	le := binary.LittleEndian
	le.PutUint32(b[0:], version)
	le.PutUint32(b[4:], uint32(l.locks))
	le.PutUint64(b[8:], l.logBytes)
	le.PutUint64(b[16:], l.memory)
	le.PutUint64(b[24:], l.group)
	le.PutUint32(b[52:], crc32.Checksum(b[:52], castagnoli))
	return b
}

// parse reads the layout from a memory's first bytes; formatted is false for blank memory.
func parse(b []byte) (l layout, formatted bool, err error) {
	le := binary.LittleEndian
	switch le.Uint64(b[magicAt:]) {
	case 0:
		return l, false, nil
	case magic:
	default:
		return l, false, fmt.Errorf("%w: it begins with %x; use memory whose first 64 bytes are zero", ErrForeign, b[:wordBytes])
	}
	if got, want := crc32.Checksum(b[8:60], castagnoli), le.Uint32(b[60:]); got != want {
		return l, false, fmt.Errorf("%w: the header's checksum is %08x, not %08x; bytes have changed", ErrForeign, got, want)
	}
	if v := le.Uint32(b[8:]); v != version {
		return l, false, fmt.Errorf("%w: its format is %d; this program knows %d", ErrForeign, v, version)
	}
	l = layout{
		locks: int(le.Uint32(b[12:])), logBytes: le.Uint64(b[16:]), memory: le.Uint64(b[24:]), group: le.Uint64(b[32:]),
	}
	return l, true, l.check()
}

// accepts tells whether memory of this layout is what a Config wants.
func (l layout) accepts(c Config, memory uint64) error {
	switch {
	case l.memory != memory:
		return fmt.Errorf("%w: it was formatted for %d bytes and has %d", ErrForeign, l.memory, memory)
	case c.LogBytes != 0 && c.LogBytes != l.logBytes:
		return fmt.Errorf("%w: its log has %d bytes, not %d; ask for that, or for 0", ErrForeign, l.logBytes, c.LogBytes)
	case c.Locks != 0 && c.Locks != l.locks:
		return fmt.Errorf("%w: it has %d locks, not %d; ask for that, or for 0", ErrForeign, l.locks, c.Locks)
	}
	return nil
}
