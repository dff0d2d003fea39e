package replica

import (
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/cluster/view"
)

// stream brings the bytes of one segment to one backup, in order.
//
//	0 ────────── done ────────── posted ────────── seg.sealed
//	  in the copy     in flight         has gathered
//
// While little is in flight a sealed batch is posted at once, by who sealed it.
// Otherwise batches gather, and whoever finds a completion posts all of them as
// one write. So one writer sees the latency of one write, and load makes batches.
//
// Nobody waits for a stream: who finds mu taken leaves, as its holder looks
// again after it gave mu back. posted and the wire belong to the holder of mu;
// done and flying change by completions, which come in order.
type stream struct {
	number uint32 // in the ids of completions; never used twice
	seg    *openSegment
	node   view.NodeID
	link   *link
	wire   wire
	// version is the replica's. Before the segment is published it belongs to who opens
	// it, then to the holder of the primary's mu.
	version uint64
	// fresh says that the replica does not count before it is raised; as version.
	fresh bool

	posted atomic.Uint32
	done   atomic.Uint32
	flying atomic.Int32
	broken atomic.Bool
	// condemned says that the replica cannot be relied on, though its link can.
	condemned atomic.Bool

	mu sync.Mutex

	// goal is how much of the segment there was when the stream joined the others; out of reach before.
	// From there on the watermark waits for it; complete is closed when it is there.
	goal     atomic.Uint32
	once     sync.Once
	complete chan struct{}
}

// wire is how bytes travel. send is called by the holder of the stream's mu, and
// says whether it took them; arrived, or the link's failure, tells the rest.
type wire interface {
	// room is how many bytes could be sent now.
	room(flying uint32) uint32
	send(s *stream, off uint32, b []byte) bool
	// release gives back what the wire held. Nothing is sent any more.
	release(flying bool)
}

const (
	// window is how many writes of a stream are in flight at most.
	window = 2
	// writeBytes bounds one of them, so that a NIC's turn can hold it.
	writeBytes = 64 << 10
)

// good tells whether the copy is one to rely on.
func (s *stream) good() bool { return s.link.good() && !s.condemned.Load() }

// counts tells whether a recovery would take the copy for one.
func (s *stream) counts() bool { return s.good() && !s.fresh }

// push posts what has gathered, if little enough is in flight.
func (s *stream) push() {
	for s.wants() && s.mu.TryLock() {
		took := s.post()
		s.mu.Unlock()
		if !took {
			return // A completion pushes again.
		}
	}
}

func (s *stream) wants() bool {
	return s.posted.Load() < s.seg.sealed.Load() && s.flying.Load() < window && !s.broken.Load()
}

// post sends what has gathered. The caller holds mu.
func (s *stream) post() bool {
	if !s.wants() {
		return true
	}
	from, to := s.posted.Load(), s.seg.sealed.Load()
	to = from + min(to-from, writeBytes, s.wire.room(from-s.done.Load()))
	if from == to {
		return false
	}
	s.flying.Add(1)
	s.posted.Store(to)
	if s.wire.send(s, from, s.seg.memory[from:to]) {
		return true
	}
	s.flying.Add(-1)
	s.posted.Store(from)
	return false
}

// arrived notes that all up to end is in the copy.
func (s *stream) arrived(end uint32) {
	was := s.done.Load()
	for was < end && !s.done.CompareAndSwap(was, end) {
		was = s.done.Load()
	}
	s.flying.Add(-1)
	s.check()
	s.again()
}

// again pushes, on the thread that may.
func (s *stream) again() {
	if s.link.sender == nil {
		s.push()
	} else if s.wants() {
		s.link.sender.wake()
	}
}

// join sets the goal: what is sealed by now.
func (s *stream) join() {
	s.goal.Store(s.seg.sealed.Load())
	s.check()
}

// check closes complete once the goal is reached.
func (s *stream) check() {
	if s.done.Load() >= s.goal.Load() {
		s.once.Do(func() { close(s.complete) })
	}
}

// retire ends the stream. When it returns nobody reads the segment through it.
func (s *stream) retire() {
	s.broken.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wire.release(s.flying.Load() > 0)
}
