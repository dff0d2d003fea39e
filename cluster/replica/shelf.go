package replica

import (
	"slices"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// shelfVolumes is how many segments a shelf has at most, beyond those that are
// being read.
const shelfVolumes = 12

// shelf keeps segments that were read from disk and checked, while fetches go
// on: all heirs of a log ask for the same ones, each for its own part, and at
// about the same time. A moment after the last fetch it is empty.
type shelf struct {
	memories memories
	pause    time.Duration // until it is empty

	mu    sync.Mutex
	list  []*volume   // the one that was asked for last is the last
	heirs readers     // all who fetched
	over  *time.Timer // clears it; nil before the first fetch
}

// readers are nodes.
type readers map[view.NodeID]struct{}

func (r *readers) add(n view.NodeID) {
	if *r == nil {
		*r = readers{}
	}
	(*r)[n] = struct{}{}
}

// volume is one segment on the shelf.
type volume struct {
	replica *replica
	closing Closing // of the bytes: a replica may be put anew
	users   int
	had     readers // heirs that were given it
	read    sync.Once
	memory  *memory
	bytes   []byte
	err     error
	split   sync.Once
	places  []placed
}

// borrow is the segment of a replica on disk; the first who asks reads it. Its
// bytes stay until giveBack, which must be called whether or not they can be had.
func (s *shelf) borrow(h *held, heir view.NodeID) *volume {
	v := s.find(h, heir)
	v.read.Do(func() {
		v.memory = s.memories.take(int(h.closing.End))
		v.err = h.load(v.memory.bytes)
		v.bytes = h.bytes
	})
	h.bytes = v.bytes
	return v
}

func (s *shelf) find(h *held, heir view.NodeID) *volume {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.list, func(v *volume) bool { return v.replica == h.replica && v.closing == h.closing })
	v := &volume{replica: h.replica, closing: h.closing}
	if at >= 0 {
		v = s.list[at]
		s.list = slices.Delete(s.list, at, at+1)
	}
	s.list = append(s.list, v)
	v.users++
	v.had.add(heir)
	s.heirs.add(heir)
	return v
}

// placed is where its entries belong, which the first who asks finds out.
func (v *volume) placed(of func(record.Ptr) (record.Place, bool)) []placed {
	v.split.Do(func() { v.places = placesIn(v.bytes, of) })
	return v.places
}

// done tells whether all heirs were given the volume. While only one has come, others may.
func (s *shelf) done(v *volume) bool { return len(s.heirs) > 1 && len(v.had) >= len(s.heirs) }

// giveBack ends a borrow. Volumes that could not be read are not kept, nor those
// that all have had, nor the oldest if there are many.
func (s *shelf) giveBack(v *volume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.users--
	s.keep(shelfVolumes)
	s.rest()
}

// rest lets all be cleared after a while. The caller holds mu.
func (s *shelf) rest() {
	if s.over == nil {
		s.over = time.AfterFunc(s.pause, s.clear)
	} else {
		s.over.Reset(s.pause)
	}
}

// clear removes what nobody reads. Who still reads will call giveBack.
func (s *shelf) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(0)
	s.memories.clear()
	s.heirs = nil
}

// lend gives memory of at least so many bytes to who reads what is on no disk, until returned.
func (s *shelf) lend(bytes int) (m *memory, returned func()) {
	m = s.memories.take(bytes)
	return m, func() {
		s.memories.give(m)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.rest()
	}
}

// keep removes all but the n latest of those that nobody reads.
func (s *shelf) keep(n int) {
	var kept []*volume
	for _, v := range slices.Backward(s.list) {
		switch {
		case v.users > 0:
		case v.err == nil && n > 0 && !s.done(v):
			n--
		default:
			s.memories.give(v.memory)
			continue
		}
		kept = append(kept, v)
	}
	slices.Reverse(kept)
	s.list = kept
}
