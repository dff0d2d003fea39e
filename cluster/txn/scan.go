package txn

import (
	"context"

	"github.com/ostrodb/ostro/cluster/group"
)

// scanner reads a replica's log as far as it is whole: up to what is no record of
// its position, or of an epoch that is none of this or before, or fails its checksum.
type scanner struct {
	ctx     context.Context
	group   *group.Group
	layout  layout
	replica *replica
	got     []byte // from the head on, perhaps more than is whole
}

func (s *scanner) scan() error {
	at := uint64(0)
	for {
		n, err := s.next(at)
		if err != nil {
			return err
		}
		if n == 0 {
			s.replica.log = s.got[:at]
			return nil
		}
		at += n
	}
}

// next is the size of the whole record at an offset from the head, or 0.
func (s *scanner) next(at uint64) (uint64, error) {
	if ok, err := s.need(at + recordBytes); !ok || err != nil {
		return 0, err
	}
	pos := s.replica.control.head + at
	n := sizeAt(s.got[at:], pos, s.layout)
	if n == 0 {
		return 0, nil
	}
	if ok, err := s.need(at + n); !ok || err != nil {
		return 0, err
	}
	epoch, _, ok := decode(s.got[at:at+n], pos, s.layout)
	if !ok || epoch>>32 > s.replica.control.epoch>>32 {
		return 0, nil
	}
	return n, nil
}

const scanBytes = 64 << 10

// need reads on until n bytes from the head are there; a log has no more than all of it.
func (s *scanner) need(n uint64) (bool, error) {
	if n > s.layout.logBytes {
		return false, nil
	}
	for have := uint64(len(s.got)); have < n; have = uint64(len(s.got)) {
		more := min(max(n-have, scanBytes), s.layout.logBytes-have)
		for _, part := range s.layout.ring(s.replica.control.head+have, more) {
			buf := make([]byte, part.n)
			if err := s.group.Read(s.ctx, s.replica.index, part.off, buf); err != nil {
				return false, err
			}
			s.got = append(s.got, buf...)
		}
	}
	return true, nil
}
