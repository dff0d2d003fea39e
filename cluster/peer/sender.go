package peer

import (
	"net"
	"sync"
	"time"
)

const (
	// A callee gets so much time to take a request off the network, a caller so much to take an
	// answer: who reads a stream may have other things to do.
	callTimeout   = 5 * time.Second
	answerTimeout = time.Minute
	// queuedBytes may wait behind a write; then senders wait, too.
	queuedBytes = 4 << 20
	// keptBytes is the largest buffer that is kept for the next write.
	keptBytes = 1 << 20
)

// sender writes frames to a connection for many. Whoever finds nobody writing
// writes, and goes on with what others have left meanwhile: under load many
// frames leave with one system call, and without it none waits for another goroutine.
//
// Invariant: pieces wait for nobody. What of them the connection does not take at once is copied, and they are
// given back before anybody waits for the other side: it may have stopped, and a log's memory with it.
type sender struct {
	c       net.Conn
	direct  *direct       // nil if c is not plain TCP
	timeout time.Duration // of a write
	plain   bool          // bulks need no sums

	mu      sync.Mutex
	drained sync.Cond // a write ended
	queued  []byte
	spare   []byte
	held    []*frame // in pieces, behind what is queued
	pieces  int      // how many those have
	bytes   int      // likewise
	vector  [][]byte // belongs to who writes
	fronts  []int    // likewise
	rest    []byte   // likewise
	writing bool
	err     error

	beside sync.WaitGroup // writers of what was set aside
}

func newSender(c net.Conn, timeout time.Duration) *sender {
	s := &sender{c: c, timeout: timeout, plain: faithful(c), direct: newDirect(c)}
	s.drained.L = &s.mu
	return s
}

// send queues a frame and sees to it that somebody writes it. The pieces of one that has some are given back
// before it returns.
func (s *sender) send(f *frame) error {
	if err := s.queue(f); err != nil {
		return err
	}
	return s.flush()
}

// Frames in pieces leave with one system call: so many of them, or until so many pieces are together, which is about what
// the system takes at once, or so many bytes, which are copied if the connection takes none.
const (
	heldFrames = 8
	heldPieces = 900
	heldBytes  = 256 << 10
)

// queue leaves a frame for the next flush. Of those in pieces it writes some as soon as there are a few.
func (s *sender) queue(f *frame) error {
	if err := f.check(); err != nil {
		f.release()
		return err
	}
	f.unsummed = s.plain
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(f.pieces) > 0 {
		return s.hold(f)
	}
	f.release()
	if err := s.writeHeld(); err != nil { // They came before it.
		return err
	}
	if err := s.awaitRoom(); err != nil {
		return err
	}
	s.queued = append(f.appendFront(s.queued), f.bulk...)
	return nil
}

// hold keeps a frame in pieces until there are a few. The caller holds mu.
func (s *sender) hold(f *frame) error {
	s.held = append(s.held, f)
	s.pieces += len(f.pieces)
	s.bytes += f.bulkBytes()
	if len(s.held) < heldFrames && s.pieces+len(f.pieces) < heldPieces && s.bytes < heldBytes {
		return s.err
	}
	return s.writeHeld()
}

// awaitRoom waits while much is queued behind a write. The caller holds mu.
func (s *sender) awaitRoom() error {
	for len(s.queued) > queuedBytes && s.writing && s.err == nil {
		s.drained.Wait()
	}
	return s.err
}

// writeHeld writes what is queued and all frames in pieces with one system call, if the connection can do
// that, or leaves a copy of them to who writes. The caller holds mu.
func (s *sender) writeHeld() error {
	if len(s.held) == 0 {
		return s.err
	}
	if s.writing || s.err != nil {
		s.copyHeld()
		return s.awaitRoom()
	}
	some := s.takeHeld()
	defer s.recycle(some)
	s.writing = true
	s.emit(func(out []byte) ([]byte, error) {
		s.fronts = s.fronts[:0]
		for _, f := range some {
			out = append(f.appendFront(out), f.bulk...)
			s.fronts = append(s.fronts, len(out))
		}
		return out, s.writeAll(out, some)
	})
	s.writeQueued()
	return s.err
}

// copyHeld gives all pieces back, and queues a copy of their frames if there is anybody to send it to. The caller holds mu.
func (s *sender) copyHeld() {
	some := s.takeHeld()
	if s.err == nil {
		for _, f := range some {
			s.queued = appendAll(append(f.appendFront(s.queued), f.bulk...), f.pieces)
		}
	}
	s.recycle(some)
}

// takeHeld takes the frames in pieces off the list. The caller holds mu.
func (s *sender) takeHeld() []*frame {
	some := s.held
	s.held, s.pieces, s.bytes = nil, 0, 0
	return some
}

// recycle releases frames, those that are not yet, and keeps the list's memory for others. The caller holds mu.
func (s *sender) recycle(some []*frame) {
	release(some)
	clear(some)
	if s.held == nil {
		s.held = some[:0]
	}
}

func release(some []*frame) {
	for _, f := range some {
		f.release()
	}
}

// dropHeld gives the pieces back of frames that will not be written.
func (s *sender) dropHeld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	release(s.held)
	s.held = nil
}

// flush writes what is queued, unless somebody does. An error closes the
// connection, so that its reader finds out.
func (s *sender) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writeHeld(); err != nil || s.writing {
		return err
	}
	s.writing = true
	s.writeQueued()
	return s.err
}

// setAside gives all pieces back and waits for nobody: a copy of their frames, and what is queued, is left to who writes, or to a
// goroutine of its own.
func (s *sender) setAside() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copyHeld()
	if s.err == nil && !s.writing && len(s.queued) > 0 {
		s.writing = true
		s.beside.Go(s.writeBeside)
	}
	return s.err
}

// writeBeside writes what was set aside. Who calls it has been made the one who writes.
func (s *sender) writeBeside() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeQueued()
}

// writeQueued writes until nothing is left, which ends the writing. The caller holds mu and is the one who writes.
func (s *sender) writeQueued() {
	for len(s.queued) > 0 && s.err == nil {
		s.emit(func(out []byte) ([]byte, error) { return out, s.write(out) })
	}
	s.writing = false
}

// emit hands what is queued to write, without the lock, and keeps its memory for the next. The
// caller holds mu and is the one who writes.
func (s *sender) emit(write func(out []byte) ([]byte, error)) {
	out := s.queued
	s.queued = s.spare[:0]
	s.mu.Unlock()
	out, err := write(out)
	s.mu.Lock()
	s.spare = nil
	if cap(out) <= keptBytes {
		s.spare = out
	}
	if err != nil && s.err == nil {
		s.err = err
		_ = s.c.Close()
	}
	s.drained.Broadcast()
}

// writeAll writes frames whose beginnings are in b, up to where fronts says, and releases them. A connection that is not
// plain TCP gets a copy: it would make a record of each piece.
func (s *sender) writeAll(b []byte, some []*frame) error {
	s.vector = s.vector[:0]
	from := 0
	for i, f := range some {
		s.vector = append(append(s.vector, b[from:s.fronts[i]]), f.pieces...)
		from = s.fronts[i]
	}
	defer clear(s.vector)
	left := s.vector
	if s.direct != nil {
		err := s.c.SetWriteDeadline(time.Time{}) // That of the last write may be over.
		if err == nil {
			left, err = s.direct.write(left)
		}
		if err != nil || len(left) == 0 {
			return err
		}
	}
	rest := appendAll(s.rest[:0], left)
	release(some)
	s.rest = nil
	if cap(rest) <= keptBytes {
		s.rest = rest
	}
	return s.write(rest)
}

func appendAll(b []byte, pieces [][]byte) []byte {
	for _, p := range pieces {
		b = append(b, p...)
	}
	return b
}

func (s *sender) write(b []byte) error {
	if err := s.c.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	_, err := s.c.Write(b)
	return err
}
