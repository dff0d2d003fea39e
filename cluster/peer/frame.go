package peer

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/ostrodb/ostro/internal/background"
)

// headerBytes is the size of a frame's header, little-endian:
//
//	 0  2  mark
//	 2  1  kind
//	 3  1  bytes of the method's name
//	 4  4  bytes of the head
//	 8  4  bytes of the bulk
//	12  4  milliseconds that a request has; 0 is no limit
//	16  8  call
//	24  4  1 if the bulk has no sum, else 0
//	28  4  CRC-32C of all before, the method and the head, and of the bulk if it has one
//
// A sum of the bulk is for networks. Connections that cannot change what they carry do without: see faithful.
const headerBytes = 32

// bulkUnsummed is the flag of frames whose bulk has no sum.
const bulkUnsummed = 1

const (
	frameMark = 0x5250 // "PR"

	// MaxHeadBytes and MaxBulkBytes bound what a frame may carry.
	MaxHeadBytes = 8 << 20
	MaxBulkBytes = 16 << 20
)

// kind is what a frame is.
type kind uint8

const (
	kindRequest kind = 1 + iota
	kindAnswer       // the end of a call
	kindPart         // a part of the answer of a stream
	kindError        // the end of a call that failed; the head is an Error
	kindCancel       // the caller no longer waits
)

// frame is one message. Its slices belong to whoever read it.
type frame struct {
	kind   kind
	call   uint64
	millis uint32
	method string
	head   []byte
	bulk   []byte
	// unsummed says that the sum leaves the bulk out.
	unsummed bool
	// pieces follow the bulk on the wire, as a part of it, from where they lie. A frame that
	// was read has none.
	pieces [][]byte
	sent   func() // called once the pieces are not needed any more; may be nil
}

// bulkBytes is how long the bulk is on the wire.
func (f *frame) bulkBytes() int {
	n := len(f.bulk)
	for _, p := range f.pieces {
		n += len(p)
	}
	return n
}

// release gives the pieces back to whom they belong.
func (f *frame) release() {
	if f.sent != nil {
		f.sent()
		f.sent, f.pieces = nil, nil
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// check says why a frame cannot be sent.
func (f *frame) check() error {
	switch {
	case len(f.method) > 255:
		return fmt.Errorf("peer: a method's name of %d bytes", len(f.method))
	case len(f.head) > MaxHeadBytes:
		return fmt.Errorf("peer: %s: a head of %d bytes; at most %d travel in one frame", f.method, len(f.head), MaxHeadBytes)
	case f.bulkBytes() > MaxBulkBytes:
		return fmt.Errorf("peer: %s: %d bytes; at most %d travel in one frame", f.method, f.bulkBytes(), MaxBulkBytes)
	}
	return nil
}

// appendFront encodes all but the bulk.
func (f *frame) appendFront(b []byte) []byte {
	at := len(b)
	le := binary.LittleEndian
	b = le.AppendUint16(b, frameMark)
	b = append(b, byte(f.kind), byte(len(f.method)))
	b = le.AppendUint32(b, uint32(len(f.head)))
	b = le.AppendUint32(b, uint32(f.bulkBytes()))
	b = le.AppendUint32(b, f.millis)
	b = le.AppendUint64(b, f.call)
	b = le.AppendUint64(b, uint64(f.flags()))
	b = append(b, f.method...)
	b = append(b, f.head...)
	sum := crc32.Update(0, castagnoli, b[at:at+headerBytes-4])
	sum = crc32.Update(sum, castagnoli, b[at+headerBytes:])
	if !f.unsummed {
		sum = crc32.Update(sum, castagnoli, f.bulk)
		for _, p := range f.pieces {
			sum = crc32.Update(sum, castagnoli, p)
		}
	}
	le.PutUint32(b[at+headerBytes-4:], sum)
	return b
}

func (f *frame) flags() uint32 {
	if f.unsummed {
		return bulkUnsummed
	}
	return 0
}

// sizes is what a header says of what follows.
type sizes struct{ method, head, bulk int }

// decodeHeader reads a header into f. It believes no size beyond the limits.
func (f *frame) decodeHeader(b *[headerBytes]byte) (sizes, error) {
	le := binary.LittleEndian
	s := sizes{int(b[3]), int(le.Uint32(b[4:])), int(le.Uint32(b[8:]))}
	flags := le.Uint32(b[24:])
	*f = frame{kind: kind(b[2]), millis: le.Uint32(b[12:]), call: le.Uint64(b[16:]), unsummed: flags == bulkUnsummed}
	switch {
	case le.Uint16(b[:]) != frameMark || f.kind < kindRequest || f.kind > kindCancel || flags > bulkUnsummed:
		return s, fmt.Errorf("%w: no frame begins like this", ErrMalformed)
	case s.head > MaxHeadBytes || s.bulk > MaxBulkBytes:
		return s, fmt.Errorf("%w: a frame of %d and %d bytes", ErrMalformed, s.head, s.bulk)
	case (f.kind == kindRequest) != (s.method > 0):
		return s, fmt.Errorf("%w: a method where none belongs, or none", ErrMalformed)
	}
	return s, nil
}

// read reads a frame. The memory for what follows the header is into, grown as needed:
// the frame's slices lie there. With nil they are the frame's own. The bulk is 8-aligned, so
// that entries of a log can be read where they lie.
func (f *frame) read(r io.Reader, into []byte) ([]byte, error) {
	return f.readBy(r, into, func(_ sizes, into []byte, read func([]byte)) { read(into) })
}

// readBy is read; by reads what follows the header, into into or other memory.
func (f *frame) readBy(r io.Reader, into []byte, by func(s sizes, into []byte, read func(into []byte))) ([]byte, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return into, err
	}
	s, err := f.decodeHeader(&header)
	if err == nil {
		by(s, into, func(room []byte) { into, err = f.readRest(r, room, &header, s) })
	}
	return into, err
}

// readRest reads what follows a header.
func (f *frame) readRest(r io.Reader, into []byte, header *[headerBytes]byte, s sizes) ([]byte, error) {
	pad := -(s.method + s.head) & 7
	n := pad + s.method + s.head + s.bulk
	if cap(into) < n {
		into = make([]byte, n)
	}
	into = into[:n]
	body := into[pad:]
	for at := 0; at < len(body); at += background.Piece {
		if _, err := io.ReadFull(r, body[at:min(at+background.Piece, len(body))]); err != nil {
			return into, fmt.Errorf("peer: a frame ended early: %w", noEOF(err))
		}
	}
	summed := body
	if f.unsummed {
		summed = body[:s.method+s.head]
	}
	sum := crc32.Update(0, castagnoli, header[:headerBytes-4])
	if crc32.Update(sum, castagnoli, summed) != binary.LittleEndian.Uint32(header[headerBytes-4:]) {
		return into, fmt.Errorf("%w: a frame does not match its CRC", ErrMalformed)
	}
	f.method = string(body[:s.method])
	f.head = body[s.method : s.method+s.head : s.method+s.head]
	f.bulk = body[s.method+s.head:]
	return into, nil
}

// noEOF makes an end that nobody meant one that cannot be taken for one that was.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Raw is a head that is not JSON.
type Raw []byte

// encodeHead makes the bytes of a head.
func encodeHead(head any) ([]byte, error) {
	switch h := head.(type) {
	case nil:
		return nil, nil
	case Raw:
		return h, nil
	}
	b, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("peer: encode a head: %w", err)
	}
	return b, nil
}

// decodeHead reads the bytes of a head.
func decodeHead(b []byte, into any) error {
	switch h := into.(type) {
	case nil:
		return nil
	case *Raw:
		*h = b
		return nil
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}
