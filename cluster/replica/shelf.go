package replica

import (
	"slices"
	"sync"
	"time"
)

// shelfVolumes is how many segments a shelf has at most, beyond those that are
// being read.
const shelfVolumes = 12

// shelf keeps segments that were read from disk and checked, while fetches go
// on: all heirs of a log ask for the same ones, each for its own part, and at
// about the same time. A moment after the last fetch it is empty.
type shelf struct {
	mu   sync.Mutex
	list []*volume   // the one that was asked for last is the last
	over *time.Timer // clears it; nil before the first fetch
}

// volume is one segment on the shelf.
type volume struct {
	replica *replica
	closing Closing // of the bytes: a replica may be put anew
	users   int
	read    sync.Once
	memory  *[]byte
	bytes   []byte
	err     error
}

// segmentMemory is memory to read segments to.
var segmentMemory = sync.Pool{New: func() any { return new([]byte) }}

// borrow is the segment of a replica on disk; the first who asks reads it. Its
// bytes stay until giveBack, which must be called whether or not they can be had.
func (s *shelf) borrow(h *held) *volume {
	v := s.find(h)
	v.read.Do(func() {
		v.memory = segmentMemory.Get().(*[]byte)
		v.err = h.load(*v.memory)
		v.bytes = h.bytes
		*v.memory = h.bytes
	})
	h.bytes = v.bytes
	return v
}

func (s *shelf) find(h *held) *volume {
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
	return v
}

// giveBack ends a borrow. Volumes that could not be read are not kept, nor are
// the oldest if there are many.
func (s *shelf) giveBack(v *volume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.users--
	s.keep(shelfVolumes)
	if s.over == nil {
		s.over = time.AfterFunc(recoveryPause, s.clear)
	} else {
		s.over.Reset(recoveryPause)
	}
}

// clear removes what nobody reads. Who still reads will call giveBack.
func (s *shelf) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(0)
}

// keep removes all but the n latest of those that nobody reads.
func (s *shelf) keep(n int) {
	var kept []*volume
	for _, v := range slices.Backward(s.list) {
		switch {
		case v.users > 0:
		case v.err == nil && n > 0:
			n--
		default:
			segmentMemory.Put(v.memory)
			continue
		}
		kept = append(kept, v)
	}
	slices.Reverse(kept)
	s.list = kept
}
