package ostropebble

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync/atomic"
	"unsafe"
)

// The data area of each replica is a journal, a ring of pieces of write-ahead
// logs:
//
//	   0  8  magic
//	   8  8  bytes of the ring
//	  16  8  tail: the position behind the last piece
//	4096     ring; position p is at p modulo its bytes
//
// and a piece, at a multiple of 8:
//
//	 0  4  CRC-32C of all behind it
//	 4  4  bytes of data
//	 8  8  position
//	16  8  session: one opening of the database; numbers of logs begin anew with it
//	24  8  log
//	32  8  offset in the log
//	40     data, and zeros to a multiple of 8
//
// A piece and the tail behind it are one transaction. Every replica's NIC
// executes a transaction's entries in order, and the tail is the last: whoever
// sees a tail finds all pieces before it.
const (
	journalMagic = 0x31424c424550534f // "OSPEBLB1"
	magicAt      = 0
	ringBytesAt  = 8
	tailAt       = 16
	ringAt       = 4096
	pieceHeader  = 40
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// piece is some bytes of a write-ahead log.
type piece struct {
	session, log, off uint64
	data              []byte
}

// size is how many bytes of the ring a piece takes.
func (p piece) size() uint64 { return (pieceHeader + uint64(len(p.data)) + 7) &^ 7 }

func (p piece) encode(pos uint64) []byte {
	b := make([]byte, p.size())
	le := binary.LittleEndian
	le.PutUint32(b[4:], uint32(len(p.data)))
	le.PutUint64(b[8:], pos)
	le.PutUint64(b[16:], p.session)
	le.PutUint64(b[24:], p.log)
	le.PutUint64(b[32:], p.off)
	copy(b[pieceHeader:], p.data)
	le.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// journal is one replica's, as its own program sees it. The NIC writes there.
type journal struct {
	data []byte // the data area
	ring []byte
}

// openJournal finds the journal in a data area; it is nil before the first front end came.
func openJournal(data []byte) (*journal, error) {
	if len(data) < ringAt {
		return nil, fmt.Errorf("pebble: a data area of %d bytes is too small for a journal", len(data))
	}
	n, err := parseJournal(data, uint64(len(data)))
	if n == 0 || err != nil {
		return nil, err
	}
	return &journal{data: data, ring: data[ringAt : ringAt+n]}, nil
}

// parseJournal reads the size of the ring from an area's first bytes, or 0 if it
// is blank.
func parseJournal(head []byte, area uint64) (uint64, error) {
	magic := binary.LittleEndian.Uint64(head[magicAt:])
	n := binary.LittleEndian.Uint64(head[ringBytesAt:])
	switch {
	case magic == 0:
		return 0, nil
	case magic != journalMagic || n == 0 || n%8 != 0 || n > area-ringAt:
		return 0, fmt.Errorf("pebble: the data area holds no journal (it begins with %x); use replicas of Pebble's own", head[:16])
	}
	return n, nil
}

// tail is the position behind the last piece.
func (j *journal) tail() uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&j.data[tailAt])))
}

// at copies n bytes of the ring from a position on.
func (j *journal) at(pos, n uint64) []byte {
	b := make([]byte, n)
	from := pos % uint64(len(j.ring))
	copy(b[copy(b, j.ring[from:]):], j.ring)
	return b
}

// read returns the piece at a position before the tail, and the next one's.
func (j *journal) read(pos uint64) (piece, uint64, error) {
	head := j.at(pos, pieceHeader)
	le := binary.LittleEndian
	p := piece{session: le.Uint64(head[16:]), log: le.Uint64(head[24:]), off: le.Uint64(head[32:])}
	n := uint64(le.Uint32(head[4:]))
	if le.Uint64(head[8:]) != pos || n > uint64(len(j.ring))-pieceHeader {
		return p, 0, fmt.Errorf("%w: no piece at %d, and the tail is %d", errGap, pos, j.tail())
	}
	whole := j.at(pos, (pieceHeader+n+7)&^7)
	if le.Uint32(whole) != crc32.Checksum(whole[4:], castagnoli) {
		return p, 0, fmt.Errorf("%w: the piece at %d is damaged", errGap, pos)
	}
	p.data = whole[pieceHeader : pieceHeader+n]
	return p, pos + uint64(len(whole)), nil
}

// from reads pieces from a position on, up to the tail or about so many bytes.
func (j *journal) from(pos, most uint64) (pieces []found, err error) {
	tail := j.tail()
	if tail < pos || tail-pos > uint64(len(j.ring)) {
		return nil, fmt.Errorf("the copy is at %d and the journal ends at %d, with %d bytes; begin with another replica's copy (Checkpoint, Seed)",
			pos, tail, len(j.ring))
	}
	for end := min(tail, pos+most); pos < end; {
		p, next, err := j.read(pos)
		if err != nil {
			return nil, err
		}
		pieces, pos = append(pieces, found{p, next}), next
	}
	return pieces, nil
}
