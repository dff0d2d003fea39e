package migrate

import (
	"encoding/binary"
	"fmt"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// The calls of a migration. A target makes them, a source answers.
const (
	methodSample   = "migrate.sample"
	methodTransfer = "migrate.transfer"
	methodPull     = "migrate.pull"
	methodKeys     = "migrate.keys"
)

// ID numbers a migration for as long as the cluster lives.
type ID = uint64

// transfer asks the source to give the ranges of a migration away, and to say when it has.
// From and Segment are where the target's log stands: nothing before counts of the ranges.
type transfer struct {
	ID      ID               `json:"id"`
	From    record.BatchID   `json:"from"`
	Segment record.SegmentID `json:"segment"`
}

// yielded is the end of the answer: the source does not serve the ranges any more, and what it acknowledged
// of them is in all copies of its log. The parts before it are the results of operations, as entries.
type yielded struct {
	// Ceiling is no lower than any version of the ranges at the source.
	Ceiling uint64 `json:"ceiling"`
	// Records estimates how many there are.
	Records int64 `json:"records"`
}

// pull asks for the next records of a range: the head of methodPull.
type pull struct {
	ID     ID
	Range  view.Range
	Cursor uint64 // 0 at the beginning, then what the last answer said
	Bytes  uint32 // about so much
}

const pullBytes = 8 + 8 + 8 + 8 + 4

func (p *pull) encode(b []byte) peer.Raw {
	le := binary.LittleEndian
	b = le.AppendUint64(b[:0], p.ID)
	b = le.AppendUint64(b, uint64(p.Range.First))
	b = le.AppendUint64(b, uint64(p.Range.Last))
	b = le.AppendUint64(b, p.Cursor)
	return le.AppendUint32(b, p.Bytes)
}

func (p *pull) decode(b []byte) error {
	if len(b) != pullBytes {
		return fmt.Errorf("%w: a pull of %d bytes", peer.ErrMalformed, len(b))
	}
	le := binary.LittleEndian
	p.ID = le.Uint64(b)
	p.Range = view.Range{First: record.Place(le.Uint64(b[8:])), Last: record.Place(le.Uint64(b[16:]))}
	p.Cursor = le.Uint64(b[24:])
	p.Bytes = le.Uint32(b[32:])
	if p.Range.First > p.Range.Last || p.Bytes > peer.MaxBulkBytes/2 {
		return fmt.Errorf("%w: a pull of %d bytes from a range that is none", peer.ErrMalformed, p.Bytes)
	}
	return nil
}

// pulled is the head of a pull's answer. Its bulk is entries.
type pulled struct {
	Cursor  uint64 // for the next pull; 0: that was all
	Records uint32
}

const pulledBytes = 8 + 4

func (p *pulled) encode() peer.Raw {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, pulledBytes), p.Cursor)
	return binary.LittleEndian.AppendUint32(b, p.Records)
}

func (p *pulled) decode(b []byte) error {
	if len(b) != pulledBytes {
		return fmt.Errorf("%w: a pull's answer with a head of %d bytes", peer.ErrMalformed, len(b))
	}
	p.Cursor, p.Records = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:])
	return nil
}

// Key is a key that is waited for. Bytes are its own.
type Key struct {
	Place record.Place
	Table record.TableID
	Bytes []byte
}

// appendKey encodes a key for methodKeys, whose bulk is keys one after the other, and whose head is
// the migration's number.
func appendKey(b []byte, k *Key) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(k.Table))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(k.Bytes)))
	return append(b, k.Bytes...)
}

// decodeKeys reads them; they lie in b.
func decodeKeys(b []byte) (keys []Key, err error) {
	for len(b) > 0 {
		if len(b) < 8 || uint64(binary.LittleEndian.Uint32(b[4:])) > uint64(len(b)-8) {
			return nil, fmt.Errorf("%w: a key that ends early", peer.ErrMalformed)
		}
		k := Key{Table: record.TableID(binary.LittleEndian.Uint32(b))}
		k.Bytes, b = b[8:8+binary.LittleEndian.Uint32(b[4:])], b[8+binary.LittleEndian.Uint32(b[4:]):]
		k.Place = record.PlaceOf(k.Table, k.Bytes)
		keys = append(keys, k)
	}
	return keys, nil
}
