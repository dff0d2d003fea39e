package peer

import (
	"bytes"
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
type sender struct {
	c       net.Conn
	timeout time.Duration // of a write
	plain   bool          // bulks need no sums

	mu      sync.Mutex
	drained sync.Cond // a write ended
	queued  []byte
	spare   []byte
	held    []*frame // in pieces, behind what is queued
	pieces  int      // how many those have
	vector  [][]byte // belongs to who writes
	fronts  []int    // likewise
	writing bool
	err     error
}

func newSender(c net.Conn, timeout time.Duration) *sender {
	s := &sender{c: c, timeout: timeout, plain: faithful(c)}
	s.drained.L = &s.mu
	return s
}

// send queues a frame and sees to it that somebody writes it. A frame in pieces is written
// before it returns.
func (s *sender) send(f *frame) error {
	if err := s.queue(f); err != nil {
		return err
	}
	return s.flush()
}

// Frames in pieces leave with one system call: so many of them, or until so many pieces are together, which is about what
// the system takes at once.
const (
	heldFrames = 8
	heldPieces = 900
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
		s.held = append(s.held, f)
		if s.pieces += len(f.pieces); len(s.held) < heldFrames && s.pieces+len(f.pieces) < heldPieces {
			return s.err
		}
		return s.writeHeld()
	}
	defer f.release()
	if err := s.writeHeld(); err != nil { // They came before it.
		return err
	}
	for len(s.queued) > queuedBytes && s.writing && s.err == nil {
		s.drained.Wait()
	}
	if s.err != nil {
		return s.err
	}
	s.queued = append(f.appendFront(s.queued), f.bulk...)
	return nil
}

// writeHeld writes what is queued and all frames in pieces with one system call, if the connection can do
// that. The caller holds mu.
func (s *sender) writeHeld() error {
	for s.writing && s.err == nil && len(s.held) > 0 {
		s.drained.Wait()
	}
	if len(s.held) == 0 {
		return s.err
	}
	some := s.held
	s.held, s.pieces = nil, 0
	defer func() {
		for i, f := range some {
			f.release()
			some[i] = nil
		}
		if s.held == nil {
			s.held = some[:0]
		}
	}()
	if s.err != nil {
		return s.err
	}
	s.writing = true
	s.emit(func(out []byte) ([]byte, error) {
		s.fronts = s.fronts[:0]
		for _, f := range some {
			out = append(f.appendFront(out), f.bulk...)
			s.fronts = append(s.fronts, len(out))
		}
		return out, s.writeAll(out, some)
	})
	s.writing = false
	return s.err
}

// dropHeld gives the pieces back of frames that will not be written.
func (s *sender) dropHeld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.held {
		f.release()
	}
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
	for len(s.queued) > 0 && s.err == nil {
		s.emit(func(out []byte) ([]byte, error) { return out, s.write(out) })
	}
	s.writing = false
	return s.err
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

// writeAll writes frames whose beginnings are in b, up to where fronts says. A connection that is not plain TCP gets a
// copy: it would make a record of each piece.
func (s *sender) writeAll(b []byte, some []*frame) error {
	s.vector = s.vector[:0]
	from := 0
	for i, f := range some {
		s.vector = append(append(s.vector, b[from:s.fronts[i]]), f.pieces...)
		from = s.fronts[i]
	}
	defer clear(s.vector)
	plain := plainTCP(s.c)
	if plain == nil {
		return s.write(bytes.Join(s.vector, nil))
	}
	if err := s.c.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	all := net.Buffers(s.vector)
	_, err := all.WriteTo(plain)
	return err
}

func (s *sender) write(b []byte) error {
	if err := s.c.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	_, err := s.c.Write(b)
	return err
}
