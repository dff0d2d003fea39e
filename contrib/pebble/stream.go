package ostropebble

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/record"
)

// blockBytes is the size of a block of a write-ahead log; no chunk crosses one.
const blockBytes = 32 << 10

// stream puts the pieces of write-ahead logs together again and finds the
// batches in them, each once. Its fields are exported to be stored with the
// database that the batches went to.
//
// Invariant: Buf holds the log's bytes from the block on in which the first
// batch begins that was not applied.
type stream struct {
	Session, Log uint64
	Begin        uint64 // offset in the log of Buf's first byte
	Done         uint64 // offset in the log behind the last batch applied
	Buf          []byte
}

// errGap says that a piece is missing: the log was not replicated in order.
var errGap = errors.New("pebble: the replicated write-ahead log has a gap")

// add takes the next piece and calls apply for every batch that is whole now.
func (s *stream) add(p piece, apply func(batch []byte) error) error {
	if p.session != s.Session || p.log != s.Log {
		// A front end ends its log before it begins the next. If it has died
		// instead, what is left has no end, and was never acknowledged.
		*s = stream{Session: p.session, Log: p.log, Buf: s.Buf[:0]}
	}
	if end := s.Begin + uint64(len(s.Buf)); p.off != end {
		return fmt.Errorf("%w: log %d goes on at %d instead of %d", errGap, p.log, p.off, end)
	}
	s.Buf = append(s.Buf, p.data...)
	return s.scan(apply)
}

// scan reads the batches behind Done. Pebble's reader starts at a block, so it
// reads those of the same block once more, and passes over them.
func (s *stream) scan(apply func([]byte) error) error {
	s.drop()
	r := newReader(record.NewReader, bytes.NewReader(s.Buf), s.Log)
	for {
		rec, err := r.Next()
		if err != nil {
			return s.ended(err)
		}
		batch, err := io.ReadAll(rec)
		if err != nil {
			return s.ended(err)
		}
		end := s.Begin + uint64(r.Offset())
		if end <= s.Done {
			continue
		}
		if err := apply(batch); err != nil {
			return err
		}
		s.Done = end
	}
}

// newReader is record.NewReader, whose type of numbers has no public name.
func newReader[N ~uint64](open func(io.Reader, N) *record.Reader, r io.Reader, log uint64) *record.Reader {
	return open(r, N(log))
}

// ended tells an end that more bytes may move from a failure.
func (s *stream) ended(err error) error {
	if err == io.EOF || record.IsInvalidRecord(err) {
		return nil
	}
	return fmt.Errorf("pebble: read the replicated write-ahead log %d: %w", s.Log, err)
}

// drop forgets the blocks before Done.
func (s *stream) drop() {
	if n := s.Done/blockBytes*blockBytes - s.Begin; n > 0 {
		s.Begin += n
		s.Buf = append(s.Buf[:0], s.Buf[n:]...)
	}
}
