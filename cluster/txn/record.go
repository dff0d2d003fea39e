package txn

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// A record in the log, at a position that is a multiple of 8:
//
//	 0  4  CRC-32C of all behind it
//	 4  4  entries
//	 8  8  position
//	16  8  epoch of the client that wrote it
//	24  8  bytes of the record, padded to a multiple of 8
//	32     entries: offset in the data area 8, bytes 8
//	       their data, one after the other
//	       zeros
//
// Position and epoch tell it from what earlier laps left, the checksum from what arrived in part.
const (
	recordBytes = 32
	entryBytes  = 16
)

// Entry is one change of the data area: Data goes to Offset.
type Entry struct {
	Offset uint64
	Data   []byte
}

// move is an entry of a record that lies in the log: n bytes at a position go to an offset.
type move struct{ to, from, n uint64 }

// sizeOf is how many bytes a record of these entries has.
func sizeOf(entries []Entry) uint64 {
	n := uint64(recordBytes + len(entries)*entryBytes)
	for _, e := range entries {
		n += uint64(len(e.Data))
	}
	return roundUp(n, wordBytes)
}

// encode makes a record's bytes and says what executing it means.
func encode(pos, epoch uint64, entries []Entry) ([]byte, []move) {
	b := make([]byte, sizeOf(entries))
	le := binary.LittleEndian
	le.PutUint32(b[4:], uint32(len(entries)))
	le.PutUint64(b[8:], pos)
	le.PutUint64(b[16:], epoch)
	le.PutUint64(b[24:], uint64(len(b)))
	data := uint64(recordBytes + len(entries)*entryBytes)
	moves := make([]move, 0, len(entries))
	for i, e := range entries {
		le.PutUint64(b[recordBytes+i*entryBytes:], e.Offset)
		le.PutUint64(b[recordBytes+i*entryBytes+8:], uint64(len(e.Data)))
		moves = append(moves, move{to: e.Offset, from: pos + data, n: uint64(len(e.Data))})
		data += uint64(copy(b[data:], e.Data))
	}
	le.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b, joined(moves)
}

// joined makes one move of two that continue each other.
func joined(moves []move) []move {
	out := moves[:0]
	for _, m := range moves {
		if m.n == 0 {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].to+out[last].n == m.to && out[last].from+out[last].n == m.from {
			out[last].n += m.n
			continue
		}
		out = append(out, m)
	}
	return out
}

// sizeAt is the size that a record's first bytes claim, or 0 if they are none at
// this position.
func sizeAt(b []byte, pos uint64, l layout) uint64 {
	n := binary.LittleEndian.Uint64(b[24:])
	if binary.LittleEndian.Uint64(b[8:]) != pos || n < recordBytes || n%wordBytes != 0 || n > l.logBytes {
		return 0
	}
	return n
}

// decode checks a record whole and says what executing it means; ok is false for
// anything but a record of this position, of an epoch within bounds, that
// changes nothing outside of the data area.
func decode(b []byte, pos uint64, l layout) (epoch uint64, moves []move, ok bool) {
	le := binary.LittleEndian
	if sizeAt(b, pos, l) != uint64(len(b)) || le.Uint32(b) != crc32.Checksum(b[4:], castagnoli) {
		return 0, nil, false
	}
	count := uint64(le.Uint32(b[4:]))
	data := recordBytes + count*entryBytes
	if data > uint64(len(b)) {
		return 0, nil, false
	}
	for i := range count {
		at := recordBytes + i*entryBytes
		to, n := le.Uint64(b[at:]), le.Uint64(b[at+8:])
		if n > uint64(len(b))-data || to > l.dataBytes() || n > l.dataBytes()-to {
			return 0, nil, false
		}
		moves = append(moves, move{to: to, from: pos + data, n: n})
		data += n
	}
	return le.Uint64(b[16:]), joined(moves), true
}

// checkEntries refuses what the data area has no room for.
func (l layout) checkEntries(entries []Entry) error {
	if len(entries) == 0 || len(entries) > math.MaxUint32 {
		return fmt.Errorf("%w: a record of %d entries", ErrRefused, len(entries))
	}
	for _, e := range entries {
		if n := uint64(len(e.Data)); e.Offset > l.dataBytes() || n > l.dataBytes()-e.Offset {
			return fmt.Errorf("%w: an entry of %d bytes at %d of %d", ErrRefused, n, e.Offset, l.dataBytes())
		}
	}
	if n := sizeOf(entries); n > l.logBytes {
		return fmt.Errorf("%w: %d bytes, and the log has %d; split the transaction or use a larger log", ErrTooLarge, n, l.logBytes)
	}
	return nil
}
