package replica

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ostrodb/ostro/fabric"
)

// ringBytes is how much of a stream can be in flight. It is a power of two, small
// enough to stay in a core's cache and large enough for a window of writes.
const ringBytes = 4 * writeBytes

// ringsAtOnce is how many rings are registered together.
const ringsAtOnce = 16

// staging is registered memory that writes start from, cut into rings. Segments lie
// in mapped files that their log moves about; a batch is copied here while it is
// in the core's cache anyway.
type staging struct {
	domain fabric.Domain

	mu   sync.Mutex
	free []stagingRing
	mem  []*fabric.Memory
	all  []fabric.Region
}

// stagingRing is a part of a region.
type stagingRing struct {
	region fabric.Region
	base   uint64
	bytes  []byte
}

func (s *staging) take() (stagingRing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) == 0 {
		if err := s.grow(); err != nil {
			return stagingRing{}, fmt.Errorf("memory to replicate from: %w", err)
		}
	}
	r := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return r, nil
}

func (s *staging) give(r stagingRing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, r)
}

func (s *staging) grow() error {
	m, err := fabric.NewMemory(ringsAtOnce * ringBytes)
	if err != nil {
		return err
	}
	region, err := s.domain.Register(m, fabric.LocalWrite)
	if err != nil {
		return errors.Join(err, m.Close())
	}
	s.mem, s.all = append(s.mem, m), append(s.all, region)
	for i := range ringsAtOnce {
		at := i * ringBytes
		s.free = append(s.free, stagingRing{region, uint64(at), m.Bytes()[at : at+ringBytes]})
	}
	return nil
}

// close gives the memory back. Nothing is sent any more, and the domain is closed.
func (s *staging) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, m := range s.mem {
		err = errors.Join(err, m.Close())
	}
	s.free, s.mem = nil, nil
	return err
}
