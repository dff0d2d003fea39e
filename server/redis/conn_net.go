package redis

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/wire/resp"
)

// netState is what a loop keeps of a connection beside what commands see.
//
// Input is read into the loop's window, shared by all connections, and parsed
// there. Only what cannot be executed yet is copied to in: the beginning of a
// command, or everything behind a command that waits for a cold key.
//
// Replies are counted from the connection's first: those before gone have
// left the buffer, those before released may be sent, the rest waits for
// its round to become durable.
type netState struct {
	in    []byte     // input that waits; nil for none
	state resp.State // how far its first command was parsed

	window  []byte // the input being executed; offsets in the batch refer to it
	pending int    // GETs of this connection in the batch

	gone     int64 // replies that have left the buffer
	sent     int   // bytes at the buffer's start that the socket took
	released int64 // replies that may be sent
	sure     int64 // replies up to here wait for nothing of their round, or unsure: see hold

	interest  uint32 // what epoll watches
	told      uint32 // news of its pipe, for loop.ready; 0: not in there
	held      int    // rounds whose replies wait to become durable
	softSince int64  // when the soft output limit was first exceeded, 0 if it is not
	slot      int    // in loop.conns
	met       uint32 // the gatherer's window in which it was served last
	failure   error  // a fetch failed: the next command answers this
	refusal   string // why its tenant may not run the command at hand

	asked     int64 // when the first command without an answer was read, by the loop's clock; 0: there is none
	waitUntil int64 // how long its command waits for a routing; 0: it does not

	round int64 // the last one in which it was served
	fuel  int64 // that its calls used there

	flying  bool // has a flight
	exposed bool // its replies of this round tell of data

	bulky  bool // its last reply was large
	queued bool // in loop.active
	parked bool // waits for a cold key: executes nothing
	paused bool // too many replies wait: executes nothing
	more   bool // in loop.again: in holds commands that can run at once
	eof    bool // nothing will be read any more: close when all is answered
	closed bool
}

// waits reports that no further command may run now.
func (n *netState) waits() bool { return n.parked || n.paused }

// receive takes what the client has sent, without blocking.
func (c *conn) receive(b []byte) (int, syscall.Errno) {
	if c.pipe != nil {
		return c.pipe.receive(b)
	}
	return receive(c.fd, b)
}

// send gives the client as much as can be given without blocking.
func (c *conn) send(b []byte) (int, syscall.Errno) {
	if c.pipe != nil {
		return c.pipe.send(b)
	}
	return send(c.fd, b)
}

// hangUp closes the connection towards the client.
func (c *conn) hangUp() {
	if c.pipe != nil {
		c.pipe.close()
		return
	}
	_ = unix.Close(c.fd) // There is nobody to tell.
}

// unsent is how many bytes of replies the socket has not taken.
func (c *conn) unsent() int { return c.out.Len() - c.net.sent }

// replied is the number of bytes of replies so far.
func (c *conn) replied() int64 { return c.net.gone + int64(c.out.Len()) }

// finished reports that nothing is left to execute or to send.
func (c *conn) finished() bool {
	n := &c.net
	return !n.parked && !n.more && !n.queued && !n.flying && n.pending == 0 && c.unsent() == 0
}

// room returns space for further input behind in. The buffer grows with the
// bytes that have arrived, never at once to what the client announced, and not
// beyond a large command's end: so the buffer is empty after it.
func (n *netState) room() []byte {
	spare := cap(n.in) - len(n.in)
	missing := n.state.Need() - len(n.in)
	switch {
	case missing > minReadBytes && spare < min(missing, minReadBytes):
		n.in = slices.Grow(n.in, min(missing, max(len(n.in), minReadBytes)))
	case missing <= minReadBytes && spare < minReadBytes:
		n.in = slices.Grow(n.in, max(len(n.in), minReadBytes))
	}
	space := n.in[len(n.in):cap(n.in)]
	if missing > minReadBytes {
		return space[:min(missing, len(space))]
	}
	return space
}

// show publishes what CLIENT LIST reads from other loops.
func (c *conn) show(now int64, last *command) {
	if c.lastSeen.Load() != now {
		c.lastSeen.Store(now)
	}
	if last != nil && c.lastCommand.Load() != last {
		c.lastCommand.Store(last)
	}
	if db := int32(c.db - c.firstDB); c.shownDB.Load() != db {
		c.shownDB.Store(db)
	}
	if c.account() != nil {
		c.settle()
	}
	if proto := int32(c.out.Proto()); c.shownProto.Load() != proto {
		c.shownProto.Store(proto)
	}
	queued := int32(-1)
	if c.multi.active {
		queued = int32(len(c.multi.queue))
	}
	if c.shownMulti.Load() != queued {
		c.shownMulti.Store(queued)
	}
}
