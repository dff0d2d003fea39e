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
type sender struct {
	c       net.Conn
	timeout time.Duration // of a write

	mu      sync.Mutex
	drained sync.Cond // a write ended
	queued  []byte
	spare   []byte
	writing bool
	err     error
}

func newSender(c net.Conn, timeout time.Duration) *sender {
	s := &sender{c: c, timeout: timeout}
	s.drained.L = &s.mu
	return s
}

// send queues a frame and sees to it that somebody writes it.
func (s *sender) send(f *frame) error {
	if err := s.queue(f); err != nil {
		return err
	}
	return s.flush()
}

// queue leaves a frame for the next flush.
func (s *sender) queue(f *frame) error {
	if err := f.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queued) > queuedBytes && s.writing && s.err == nil {
		s.drained.Wait()
	}
	if s.err != nil {
		return s.err
	}
	s.queued = append(f.appendFront(s.queued), f.bulk...)
	return nil
}

// flush writes what is queued, unless somebody does. An error closes the
// connection, so that its reader finds out.
func (s *sender) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing {
		return s.err
	}
	s.writing = true
	for len(s.queued) > 0 && s.err == nil {
		out := s.queued
		s.queued = s.spare[:0]
		s.mu.Unlock()
		err := s.write(out)
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
	s.writing = false
	return s.err
}

func (s *sender) write(b []byte) error {
	if err := s.c.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	_, err := s.c.Write(b)
	return err
}
