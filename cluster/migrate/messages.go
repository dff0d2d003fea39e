package migrate

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// The calls of a migration. A target makes them, a source answers.
const (
	methodSample   = "migrate.sample"
	methodTransfer = "migrate.transfer"
	methodReturned = "migrate.returned"
	methodPull     = "migrate.pull"
	methodKeys     = "migrate.keys"
	methodKnown    = "migrate.known"
	methodSegments = "migrate.segments"
	methodSegment  = "migrate.segment"
)

// errUnreadable says that the source cannot read a record of those that were asked for together.
var errUnreadable = peer.NewCode("migrate-unreadable", "a record of those that were asked for cannot be read")

// ID numbers a migration for as long as the cluster lives.
type ID = uint64

// transfer asks the source to give the ranges of a migration away, and to say when it has.
// From and Segment are where the target's log stands: nothing before counts of the ranges. Incarnation is which process of the target
// has it; one of an earlier version does not say, and is refused until it does.
type transfer struct {
	ID          ID               `json:"id"`
	From        record.BatchID   `json:"from"`
	Segment     record.SegmentID `json:"segment"`
	Incarnation int64            `json:"incarnation,omitempty"`
	// Counted says that the target knows how much there is: clients wait while the source estimates.
	Counted bool `json:"counted,omitempty"`
	// Ahead says that the target knows what to do with what comes before the source has yielded.
	Ahead bool `json:"ahead,omitempty"`
	// Later says that the target knows what to do with what is judged after the source has answered.
	Later bool `json:"later,omitempty"`
}

// sampled is the first part of the answer to methodSample; the end comes when the sample was taken.
type sampled struct {
	// Bytes and Records estimate how much there is to pull.
	Bytes   int64 `json:"bytes"`
	Records int64 `json:"records"`
}

// yielded is the end of the answer: the source does not serve the ranges any more, and what it acknowledged
// of them is in all copies of its log. The parts before it are entries: results of operations, and records that clients use.
type yielded struct {
	// Ahead is set in parts that were sent before the source had yielded, and Outdated in the end: what of them does not count.
	Ahead    bool     `json:"ahead,omitempty"`
	Outdated []extent `json:"outdated,omitempty"`
	// All is set in the part that has all that clients wait for. What follows it is a part that is Later, if there is one, and the same as
	// the answer: that is made by another thread, which may have to wait for a core.
	All bool `json:"all,omitempty"`
	// Later is set if only the first Until bytes of what was sent ahead are judged by Outdated. Those behind them follow, in a part of their own
	// that is Later, too, and in which they are counted from there on.
	Later bool   `json:"later,omitempty"`
	Until uint32 `json:"until,omitempty"`
	// Ceiling is no lower than any version of the ranges at the source.
	Ceiling uint64 `json:"ceiling"`
	// Bytes estimates how much there is to pull.
	Bytes int64 `json:"bytes"`
	// Closed is for how long clients had been waiting when it was sent; 0 if the source yielded for an earlier question.
	Closed time.Duration `json:"closed,omitempty"`
	// Took is how long the source had been at the question then: what is left of the time until its answer is the way there and back.
	Took time.Duration `json:"took,omitempty"`
}

// closedFor is for how long clients had been waiting, at the most, when the answer to a question of so long ago came; 0 if that is not known.
func (y *yielded) closedFor(since time.Duration) time.Duration {
	if y.Closed == 0 || y.Took == 0 {
		return y.Closed // A source of an earlier version does not say how long the way was.
	}
	return y.Closed + max(since-y.Took, 0)
}

// pull asks for the next records of a range: the head of methodPull.
type pull struct {
	ID     ID
	Range  view.Range
	Cursor store.PullCursor // as the last answer said; zero at the beginning
	Bytes  uint32           // about so much
	// Since leaves out what lies in segments before it.
	Since record.SegmentID
	// Life is that of the source whose segments Since is one of. Without Since it says nothing.
	Life uint64
	// Indirect asks for word of cold records instead of them.
	Indirect bool
}

const (
	cursorBytes = 4 * 8
	pullBytes   = 8 + 8 + 8 + cursorBytes + 4 + 8 + 8 + 1
)

func (p *pull) encode(b []byte) peer.Raw {
	le := binary.LittleEndian
	b = le.AppendUint64(b[:0], p.ID)
	b = le.AppendUint64(b, uint64(p.Range.First))
	b = le.AppendUint64(b, uint64(p.Range.Last))
	b = appendCursor(b, p.Cursor)
	b = le.AppendUint32(b, p.Bytes)
	b = le.AppendUint64(b, uint64(p.Since))
	b = le.AppendUint64(b, p.Life)
	return appendBool(b, p.Indirect)
}

func appendBool(b []byte, yes bool) []byte {
	if yes {
		return append(b, 1)
	}
	return append(b, 0)
}

func (p *pull) decode(b []byte) error {
	if len(b) != pullBytes {
		return fmt.Errorf("%w: a pull of %d bytes", peer.ErrMalformed, len(b))
	}
	le := binary.LittleEndian
	p.ID = le.Uint64(b)
	p.Range = view.Range{First: record.Place(le.Uint64(b[8:])), Last: record.Place(le.Uint64(b[16:]))}
	p.Cursor = cursorOf(b[24:])
	p.Bytes = le.Uint32(b[24+cursorBytes:])
	p.Since = record.SegmentID(le.Uint64(b[28+cursorBytes:]))
	p.Life = le.Uint64(b[36+cursorBytes:])
	p.Indirect = b[44+cursorBytes] != 0
	if p.Range.First > p.Range.Last || p.Bytes > peer.MaxBulkBytes/2 {
		return fmt.Errorf("%w: a pull of %d bytes from %s", peer.ErrMalformed, p.Bytes, p.Range)
	}
	return nil
}

func appendCursor(b []byte, c store.PullCursor) []byte {
	for _, n := range []uint64{c.At, uint64(c.Log), c.Value, c.Piece} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

func cursorOf(b []byte) store.PullCursor {
	le := binary.LittleEndian
	return store.PullCursor{At: le.Uint64(b), Log: record.LogID(le.Uint64(b[8:])), Value: le.Uint64(b[16:]), Piece: le.Uint64(b[24:])}
}

// pulled is the head of an answer to all kinds of pulls. Its bulk is entries, then word of cold records.
type pulled struct {
	Cursor  store.PullCursor // for the next pull; zero: that was all
	Records uint32
	Cold    uint32
}

const pulledBytes = cursorBytes + 4 + 4

func (p *pulled) encode() peer.Raw {
	b := appendCursor(make([]byte, 0, pulledBytes), p.Cursor)
	b = binary.LittleEndian.AppendUint32(b, p.Records)
	return binary.LittleEndian.AppendUint32(b, p.Cold)
}

func (p *pulled) decode(b []byte) error {
	if len(b) != pulledBytes {
		return fmt.Errorf("%w: a pull's answer with a head of %d bytes", peer.ErrMalformed, len(b))
	}
	p.Cursor, p.Records = cursorOf(b), binary.LittleEndian.Uint32(b[cursorBytes:])
	p.Cold = binary.LittleEndian.Uint32(b[cursorBytes+4:])
	return nil
}

// all tells whether nothing is left behind it.
func (p *pulled) all() bool { return p.Cursor == (store.PullCursor{}) }

// keys asks for single keys: the head of methodKeys, whose bulk is the keys, one after the other, and of methodKnown.
type keys struct {
	ID     ID
	Cursor store.PullCursor // where the first of them goes on
}

func (k *keys) encode() peer.Raw {
	return appendCursor(binary.LittleEndian.AppendUint64(make([]byte, 0, 8+cursorBytes), k.ID), k.Cursor)
}

func (k *keys) decode(b []byte) error {
	if len(b) != 8+cursorBytes {
		return fmt.Errorf("%w: a pull of keys with a head of %d bytes", peer.ErrMalformed, len(b))
	}
	k.ID, k.Cursor = binary.LittleEndian.Uint64(b), cursorOf(b[8:])
	if k.Cursor.At != 0 || k.Cursor.Piece > math.MaxInt32 {
		return fmt.Errorf("%w: a pull of keys that goes on at %+v", peer.ErrMalformed, k.Cursor)
	}
	return nil
}

// gave is the head of an answer to a pull of keys, or of what is known of. Its bulk is entries.
type gave struct {
	store.Unsent
	Records uint32
}

const gaveBytes = 8 + cursorBytes + 4

func (g *gave) encode() peer.Raw {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, gaveBytes), g.Keys)
	return binary.LittleEndian.AppendUint32(appendCursor(b, g.Next), g.Records)
}

// decode reads the answer to a pull of so many keys, the first of them from a cursor on. One that says what cannot be is refused:
// the same would be asked for for ever, or somebody told that a key came which did not.
func (g *gave) decode(b []byte, asked int, from store.PullCursor) error {
	if len(b) != gaveBytes {
		return fmt.Errorf("%w: an answer to a pull of keys with a head of %d bytes", peer.ErrMalformed, len(b))
	}
	g.Keys, g.Next = binary.LittleEndian.Uint64(b), cursorOf(b[8:])
	g.Records = binary.LittleEndian.Uint32(b[8+cursorBytes:])
	begun := g.Next != store.PullCursor{}
	switch {
	case asked < store.MaxPullKeys && g.Keys>>asked != 0:
		return fmt.Errorf("%w: an answer that tells of more than the %d keys that were asked for", peer.ErrMalformed, asked)
	case begun != g.Has(0):
		return fmt.Errorf("%w: an answer whose first key is left and goes on at %+v", peer.ErrMalformed, g.Next)
	case begun && (g.Next == from || g.Next.At != 0):
		return fmt.Errorf("%w: an answer that gets no further than %+v", peer.ErrMalformed, from)
	}
	return nil
}

// appendKey encodes a key.
func appendKey(b []byte, k *store.ArrivingKey) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(k.Table))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(k.Bytes)))
	return append(b, k.Bytes...)
}

// decodeKeys reads them; they lie in b.
func decodeKeys(b []byte) (list []store.ArrivingKey, err error) {
	for len(b) > 0 {
		if len(b) < 8 || uint64(binary.LittleEndian.Uint32(b[4:])) > uint64(len(b)-8) {
			return nil, fmt.Errorf("%w: a key that ends early", peer.ErrMalformed)
		}
		if len(list) == store.MaxPullKeys {
			return nil, errManyKeys
		}
		k := store.ArrivingKey{Table: record.TableID(binary.LittleEndian.Uint32(b))}
		end := 8 + binary.LittleEndian.Uint32(b[4:])
		k.Bytes, b = b[8:end:end], b[end:]
		k.Place = record.PlaceOf(k.Table, k.Bytes)
		list = append(list, k)
	}
	return list, nil
}

var errManyKeys = fmt.Errorf("%w: a pull of more than %d keys", peer.ErrMalformed, store.MaxPullKeys)
