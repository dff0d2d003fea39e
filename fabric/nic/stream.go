package nic

import (
	"errors"
	"io"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	stagingBytes = 64 << 10  // headers and small payloads are read into here
	outboxBytes  = 256 << 10 // what waits to be written
	directBytes  = 8 << 10   // a payload with this much to come is read straight to its place
	lastBytes    = 8         // but for its end, which is placed when all before it is there
)

// stream is a socket with the bytes that were read ahead and those to be written.
type stream struct {
	fd      int
	staging []byte // read[from:to] is not parsed yet
	from    int
	to      int
	outbox  []byte // out[sent:] is not written yet
	sent    int
	blocked bool // the socket took no more; it tells when it does
	mute    bool // nothing is read for now
	closed  bool
}

func newStream(fd int) stream {
	return stream{fd: fd, staging: make([]byte, stagingBytes), outbox: make([]byte, 0, outboxBytes)}
}

// unread are the bytes at hand.
func (s *stream) unread() []byte { return s.staging[s.from:s.to] }

func (s *stream) skip(n int) { s.from += n }

// fill reads with one system call: first into place, as far as there is one,
// then into the staging buffer. It returns how many bytes went to their place.
// Staging must have been parsed down to less than a header.
func (s *stream) fill(place unsafe.Pointer, n uint64) (placed uint64, err error) {
	s.to = copy(s.staging, s.staging[s.from:s.to])
	s.from = 0
	rest := s.staging[s.to:]
	var got int
	if n == 0 {
		got, err = unix.Read(s.fd, rest)
	} else {
		got, err = unix.Readv(s.fd, [][]byte{unsafe.Slice((*byte)(place), n), rest})
	}
	switch {
	case errors.Is(err, unix.EINTR):
		return 0, unix.EAGAIN
	case err != nil:
		return 0, err
	case got == 0:
		return 0, io.EOF
	}
	placed = min(uint64(got), n)
	s.to += got - int(placed)
	return placed, nil
}

// room is how many bytes may still be put into the outbox.
func (s *stream) room() int { return outboxBytes - len(s.outbox) }

// spare are the n bytes behind what is in the outbox. What is copied there counts
// only after grow: memory that fails in the middle leaves nothing to be sent.
func (s *stream) spare(n int) []byte { return s.outbox[len(s.outbox) : len(s.outbox)+n] }

// grow makes room for n bytes in the outbox, which has it, and returns them.
func (s *stream) grow(n int) []byte {
	at := len(s.outbox)
	s.outbox = s.outbox[:at+n]
	return s.outbox[at:]
}

// flush writes what the socket takes, all of it with one system call if it can.
func (s *stream) flush(p *poller) error {
	for s.sent < len(s.outbox) {
		n, err := unix.Write(s.fd, s.outbox[s.sent:])
		switch {
		case errors.Is(err, unix.EAGAIN):
			s.outbox = s.outbox[:copy(s.outbox, s.outbox[s.sent:])]
			s.sent = 0
			s.watch(p, s.mute, true)
			return nil
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		default:
			s.sent += n
		}
	}
	s.outbox, s.sent = s.outbox[:0], 0
	if s.blocked {
		s.watch(p, s.mute, false)
	}
	return nil
}

// watch says which events the loop wants to hear of.
func (s *stream) watch(p *poller, mute, blocked bool) {
	if s.mute == mute && s.blocked == blocked {
		return
	}
	s.mute, s.blocked = mute, blocked
	events := uint32(unix.EPOLLIN)
	if mute {
		events = unix.EPOLLRDHUP // A peer that hangs up is heard of all the same.
	}
	if blocked {
		events |= unix.EPOLLOUT
	}
	p.change(s.fd, events)
}

func (s *stream) close(p *poller) {
	if s.closed {
		return
	}
	s.closed = true
	p.remove(s.fd)
	_ = unix.Close(s.fd)
}
