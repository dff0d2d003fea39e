package hlog

import (
	"errors"
	"fmt"

	"github.com/ostrodb/ostro/engine/record"
)

// ErrGone says that the segment was cleaned away meanwhile: its live records
// are elsewhere, and the index knows where.
var ErrGone = errors.New("the segment is gone")

// fetchBytes is how much of a cold record the first read takes: most records
// need no second.
const fetchBytes = 4096

// Fetch reads the entry at a, in the segment with the id, from disk or the blob
// tier into memory of its own.
func (l *Log) Fetch(a record.Address, id record.SegmentID) ([]byte, error) {
	s := l.Segment(a.Slot())
	if s == nil || s.ID != id {
		return nil, ErrGone // The slot may be another segment's by now.
	}
	s.io.RLock()
	defer s.io.RUnlock()
	off, end := int64(a.Offset()), int64(s.End())
	buf := make([]byte, min(fetchBytes, end-off))
	if err := l.readFull(s, buf, off); err != nil {
		return nil, err
	}
	n := record.PtrOf(buf).Length()
	if n < record.HeaderBytes || off+int64(n) > end {
		return nil, &record.CorruptError{Segment: s.ID, Offset: int(off), Reason: "impossible length"}
	}
	if n > len(buf) {
		rest := make([]byte, n)
		m := copy(rest, buf)
		if err := l.readFull(s, rest[m:], off+int64(m)); err != nil {
			return nil, err
		}
		buf = rest
	}
	if !record.PtrOf(buf[:n]).CRCValid() {
		return nil, &record.CorruptError{Segment: s.ID, Offset: int(off), Reason: "checksum mismatch"}
	}
	return buf[:n:n], nil
}

func (l *Log) readFull(s *Segment, p []byte, off int64) error {
	var n int
	var err error
	switch {
	case s.file != nil:
		n, err = s.file.ReadAt(p, off)
	case s.remote.Load() && l.opts.Remote != nil:
		n, err = l.opts.Remote(s.ID, p, off)
	default:
		return ErrGone
	}
	if n == len(p) {
		return nil
	}
	return fmt.Errorf("read segment %d at %d: %w", s.ID, off, err)
}

// Load reads a closed segment from disk or the blob tier, and checks it. The
// caller holds no guard; the bytes are its own.
func (l *Log) Load(s *Segment) ([]byte, error) {
	s.io.RLock()
	defer s.io.RUnlock()
	b := make([]byte, s.End())
	if err := l.readFull(s, b, 0); err != nil {
		return nil, err
	}
	if _, err := record.ScanWith(b, s.ID, record.ScanOptions{Closed: true}); err != nil {
		return nil, err
	}
	return b, nil
}
