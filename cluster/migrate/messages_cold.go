package migrate

import (
	"encoding/binary"
	"fmt"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// indirectionBytes is an indirection on the wire: known bits u64, segment u64, offset u32.
const indirectionBytes = 20

func appendIndirection(b []byte, i store.Indirection) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(i.Known))
	b = le.AppendUint64(b, uint64(i.Segment))
	return le.AppendUint32(b, i.Offset)
}

// split parts the bulk of an answer.
func (p *pulled) split(bulk []byte) (entries []byte, cold []store.Indirection, err error) {
	at := len(bulk) - int(p.Cold)*indirectionBytes
	if at < 0 {
		return nil, nil, fmt.Errorf("%w: %d indirections in %d bytes", peer.ErrMalformed, p.Cold, len(bulk))
	}
	le := binary.LittleEndian
	for b := bulk[at:]; len(b) > 0; b = b[indirectionBytes:] {
		i := store.Indirection{Known: record.Place(le.Uint64(b)), Segment: record.SegmentID(le.Uint64(b[8:])), Offset: le.Uint32(b[16:])}
		if i.Offset >= record.MaxSegmentBytes {
			return nil, nil, fmt.Errorf("%w: an indirection to offset %d", peer.ErrMalformed, i.Offset)
		}
		cold = append(cold, i)
	}
	return bulk[:at], cold, nil
}

// appendPlaces encodes places: the bulk of methodKnown, whose head is that of methodKeys.
func appendPlaces(b []byte, places []record.Place) []byte {
	for _, p := range places {
		b = binary.LittleEndian.AppendUint64(b, uint64(p))
	}
	return b
}

func decodePlaces(b []byte) (places []record.Place, err error) {
	if len(b)%8 != 0 {
		return nil, fmt.Errorf("%w: places of %d bytes", peer.ErrMalformed, len(b))
	}
	if len(b) > 8*store.MaxPullKeys {
		return nil, errManyKeys
	}
	for ; len(b) > 0; b = b[8:] {
		places = append(places, record.Place(binary.LittleEndian.Uint64(b)))
	}
	return places, nil
}

// segments answers methodSegments: those that are to be read one by one, and from which on pulls by places do.
type segments struct {
	Old   []record.SegmentID `json:"old"`
	Since record.SegmentID   `json:"since"`
	Life  uint64             `json:"life"` // of the source: the next one's cleaner has moved other records
}

// segmentPull asks for the next records in a segment: the head of methodSegment.
type segmentPull struct {
	ID      ID
	Segment record.SegmentID
	Cursor  store.PullCursor
	Bytes   uint32
	// Answered asks for word of all that was found alive, given or not.
	Answered bool
}

const segmentPullBytes = 8 + 8 + cursorBytes + 4 + 1

func (p *segmentPull) encode(b []byte) peer.Raw {
	le := binary.LittleEndian
	b = le.AppendUint64(b[:0], p.ID)
	b = le.AppendUint64(b, uint64(p.Segment))
	b = appendCursor(b, p.Cursor)
	b = le.AppendUint32(b, p.Bytes)
	return appendBool(b, p.Answered)
}

func (p *segmentPull) decode(b []byte) error {
	if len(b) != segmentPullBytes {
		return fmt.Errorf("%w: a pull of a segment with %d bytes", peer.ErrMalformed, len(b))
	}
	le := binary.LittleEndian
	p.ID, p.Segment, p.Cursor = le.Uint64(b), record.SegmentID(le.Uint64(b[8:])), cursorOf(b[16:])
	p.Bytes, p.Answered = le.Uint32(b[16+cursorBytes:]), b[20+cursorBytes] != 0
	if p.Bytes > peer.MaxBulkBytes/2 || p.Cursor.At >= record.MaxSegmentBytes {
		return fmt.Errorf("%w: a pull of %d bytes of a segment from %d on", peer.ErrMalformed, p.Bytes, p.Cursor.At)
	}
	return nil
}
