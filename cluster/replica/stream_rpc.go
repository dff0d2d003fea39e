package replica

import (
	"context"
	"slices"
	"sync"

	"github.com/ostrodb/ostro/cluster/peer"
)

// sender posts for all streams of a link that replicates by calls. Sending may wait for
// a socket, so no worker does it: it wakes the sender.
type sender struct {
	p      *Primary
	link   *link
	news   chan struct{}
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	streams []*stream
}

func newSender(p *Primary, l *link) *sender {
	s := &sender{p: p, link: l, news: make(chan struct{}, 1), ended: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(p.ctx)
	go s.run()
	return s
}

// wake makes the sender look at its streams. It never waits.
func (s *sender) wake() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

func (s *sender) run() {
	defer close(s.ended)
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.news:
		}
		s.mu.Lock()
		all := slices.Clone(s.streams)
		s.mu.Unlock()
		for _, t := range all {
			t.push()
		}
	}
}

func (s *sender) add(t *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = append(s.streams, t)
}

func (s *sender) remove(t *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = slices.DeleteFunc(s.streams, func(o *stream) bool { return o == t })
}

func (s *sender) stop() {
	s.cancel()
	s.p.o.Peers.Drop(s.link.node)
	<-s.ended
}

// byCall sends bytes in calls that a worker of the backup answers once it has
// copied them: replication as it was before one-sided writes. Calls are pipelined
// like writes, and carry all that has gathered.
type byCall struct {
	sender *sender
	stream *stream
	handle uint64

	mu     sync.Mutex
	flying []flight // in the order they were sent
}

// flight is a call under way. Long calls may overtake: what counts is the front.
type flight struct {
	end      uint32
	answered bool
}

func (c *byCall) room(uint32) uint32 { return writeBytes }

func (c *byCall) send(s *stream, off uint32, b []byte) bool {
	end := off + uint32(len(b))
	c.mu.Lock()
	c.flying = append(c.flying, flight{end: end})
	c.mu.Unlock()
	// The log may move a segment's bytes while a call of a retired stream is under
	// way: it has a copy.
	bulk := slices.Clone(b)
	head := AppendHead{Handle: c.handle, Offset: off}.Encode()
	c.sender.p.o.Peers.Go(c.sender.ctx, s.node, MethodAppend, head, bulk, func(_, _ []byte, err error) {
		c.answered(end, err)
	})
	return true
}

// answered notes the end of a call.
func (c *byCall) answered(end uint32, err error) {
	if err != nil {
		c.sender.p.refused(err)
		c.sender.link.fail(err)
		return
	}
	for _, e := range c.front(end) {
		c.stream.arrived(e)
	}
	if c.sender.p.count(c.stream.seg) {
		c.sender.p.source.Advanced()
	}
}

// front takes the calls that have been answered without a gap.
func (c *byCall) front(end uint32) (ends []uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.flying {
		if c.flying[i].end == end {
			c.flying[i].answered = true
		}
	}
	for len(c.flying) > 0 && c.flying[0].answered {
		ends = append(ends, c.flying[0].end)
		c.flying = c.flying[1:]
	}
	return ends
}

func (c *byCall) release(bool) { c.sender.remove(c.stream) }

var _ Caller = (*peer.Pool)(nil)
