package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/wire"
)

// session is a worker's connection to one server. Calls wait in its queue until they go out in
// a batch, and then in a slot, whose number is their tag, until they are answered.
type session struct {
	w       *worker
	c       *Client
	address string
	heard   atomic.Int64 // when the server was heard last, Unix nanoseconds

	mu     sync.Mutex
	room   sync.Cond // fewer are in flight, or it is over
	routes *routes   // by which the queue's calls came here
	conn   net.Conn  // nil until the server has welcomed us
	limit  int       // of what may be in flight
	over   error     // why it has ended

	queue   []*call
	queued  int // bytes of queue
	slots   []*call
	free    []uint32
	number  uint32
	batches map[uint32]*batch
	unheard int // bytes of batches
	out     []byte
	aside   []*call // must not be sent any more
	writing bool
	wantMap bool
	probing bool

	linger   *time.Timer
	armed    bool
	lingered bool // the queue has waited long enough

	answers []answer // the reader's
}

// batch is a batch that is under way.
type batch struct {
	number uint32
	calls  []*call // nil: not in this batch any more
	left   int     // calls that are not answered
	bytes  int
	sent   time.Duration // by Options.now
	view   view.ViewID
	// revision is that of the map by which it was sent.
	revision uint64
}

// answer is a call with its result.
type answer struct {
	cl *call
	r  wire.Result
}

// pipelined is how many batches are under way before operations wait for company.
const pipelined = 2

func newSession(w *worker, address string) *session {
	s := &session{w: w, c: w.c, address: address, limit: w.c.opts.MaxInFlight, batches: map[uint32]*batch{}}
	s.room.L = &s.mu
	s.linger = time.AfterFunc(time.Hour, s.lingerOver)
	s.linger.Stop()
	return s
}

// run opens the session and receives until it ends.
func (s *session) run() {
	g, err := s.c.open(s.c.ctx, s.address, s.w.id)
	if err == nil {
		s.c.learn(g.routes)
		err = s.welcomed(g)
	}
	if err == nil {
		in := &input{conn: g.conn, b: g.rest}
		for err == nil {
			err = s.receive(in)
		}
		_ = g.conn.Close()
	}
	s.fail(err)
}

// welcomed lets the queue go out.
func (s *session) welcomed(g *greeting) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		_ = g.conn.Close()
		return s.over
	}
	s.conn = g.conn
	s.limit = min(s.limit, int(g.welcome.MaxOps))
	s.touch()
	s.kick()
	return nil
}

func (s *session) touch() { s.heard.Store(time.Now().UnixNano()) }

// errAgain asks for another look at the routes.
var errAgain = errors.New("look again")

// enqueue takes a call that r has sent here. It waits for room, or returns ErrBusy.
func (s *session) enqueue(ctx context.Context, cl *call, r *routes, wait bool) error {
	moved, err := s.accept(ctx, cl, r, wait)
	s.c.elsewhere(moved)
	return err
}

func (s *session) accept(ctx context.Context, cl *call, r *routes, wait bool) (moved []*call, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !cl.admitted && s.inFlight() >= s.limit {
		if err := s.awaitRoom(ctx, wait); err != nil {
			return nil, err
		}
	}
	if s.over != nil || s.routes != nil && s.routes.newer(r) {
		return nil, errAgain
	}
	moved = s.adopt(r)
	cl.admitted = true
	s.queue = append(s.queue, cl)
	s.queued += cl.bytes()
	s.kick()
	return moved, nil
}

func (s *session) inFlight() int { return len(s.queue) + len(s.slots) - len(s.free) }

// awaitRoom waits until less is in flight.
func (s *session) awaitRoom(ctx context.Context, wait bool) error {
	if !wait || s.c.opts.FailWhenFull {
		return ErrBusy
	}
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.room.Broadcast()
	})
	defer stop()
	for s.inFlight() >= s.limit && s.over == nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.room.Wait()
	}
	return nil
}

// adopt takes newer routes and returns those of the queue that they may not send here. The
// caller holds mu.
func (s *session) adopt(r *routes) (moved []*call) {
	if !r.newer(s.routes) {
		return nil
	}
	s.routes = r
	left := s.queue[:0]
	s.queued = 0
	for _, cl := range s.queue {
		if address, ok := r.address(cl.place); cl.pinned || ok && address == s.address && cl.piece == nil {
			left = append(left, cl)
			s.queued += cl.bytes()
		} else {
			moved = append(moved, cl)
		}
	}
	clear(s.queue[len(left):])
	s.queue = left
	return moved
}

// kick sends the queue if it is due. The caller holds mu, and may find it was
// released meanwhile.
func (s *session) kick() {
	if s.writing || s.conn == nil || s.over != nil {
		return
	}
	if !s.isDue() {
		s.arm()
		return
	}
	s.writing = true
	if s.unheard+s.queued <= quietBytes {
		s.write()
		return
	}
	s.c.running.Go(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.write()
	})
}

// quietBytes is what every socket takes without waiting for the other side. Beyond it the
// goroutine that receives must not write: the server may be waiting for it.
const quietBytes = 16 << 10

func (s *session) isDue() bool {
	return s.wantMap || len(s.queue) > 0 &&
		(len(s.batches) < pipelined || s.lingered || s.queued >= s.c.opts.BatchBytes || len(s.queue) >= s.c.opts.BatchOps)
}

// arm lets the queue go out after a while.
func (s *session) arm() {
	if len(s.queue) > 0 && !s.armed {
		s.armed = true
		s.linger.Reset(s.c.opts.Linger)
	}
}

func (s *session) lingerOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed, s.lingered = false, true
	s.kick()
}

// write sends while something is due. The caller holds mu and has set writing; mu is
// released while the socket is written to.
func (s *session) write() {
	for s.over == nil && s.isDue() {
		b := s.out[:0]
		if s.wantMap {
			b, s.wantMap = wire.AppendRefresh(b), false
		}
		for len(s.queue) > 0 && s.isDue() && len(b) < s.c.opts.BatchBytes {
			b = s.encode(b)
		}
		s.out = b
		aside := s.aside
		s.aside = nil
		s.mu.Unlock()
		_, err := s.conn.Write(b)
		s.c.elsewhere(aside)
		s.mu.Lock()
		if err != nil {
			_ = s.conn.Close() // The receiver sees it and ends the session.
			break
		}
		if cap(s.out) > 1<<20 {
			s.out = nil
		}
	}
	s.writing = false
	s.arm()
}

// encode moves a batch from the queue to b, if there is one. What must not be sent any more is put aside.
func (s *session) encode(b []byte) []byte {
	n, size := 0, 0
	first := ^uint64(0)
	for n < len(s.queue) && n < s.c.opts.BatchOps && (n == 0 || size+s.queue[n].bytes() <= s.c.opts.BatchBytes) {
		size += s.queue[n].bytes()
		n++
	}
	calls := make([]*call, 0, n)
	for _, cl := range s.queue[:n] {
		if s.c.overdue(cl) != nil {
			s.aside = append(s.aside, cl)
			s.room.Broadcast()
			continue
		}
		calls = append(calls, cl)
		if cl.once() {
			first = min(first, cl.op.Sequence)
		}
	}
	left := copy(s.queue, s.queue[n:])
	clear(s.queue[left:])
	s.queue = s.queue[:left]
	s.queued -= size
	s.lingered = false
	if len(calls) == 0 {
		return b
	}
	if first == ^uint64(0) {
		first = 0
	}
	if len(s.batches) == 0 {
		s.touch()
	}
	s.number++
	bt := &batch{number: s.number, calls: calls, left: len(calls), bytes: size, sent: s.c.opts.now(), view: s.routes.viewAt(s.address), revision: s.routes.Revision}
	s.batches[bt.number] = bt
	s.unheard += size
	b, start := wire.BeginBatch(b, &wire.Batch{
		View: uint64(bt.view), Client: s.w.id, First: first, Acked: s.w.acks.below(), Number: bt.number,
	})
	for i, cl := range bt.calls {
		cl.batch, cl.index = bt, i
		if cl.sent == 0 {
			cl.sent = bt.sent
		}
		cl.op.Tag = s.slot(cl)
		b = wire.AppendOp(b, &cl.op, first)
	}
	s.c.stats.batches.Add(1)
	return wire.EndBatch(b, start, len(calls))
}

func (s *session) slot(cl *call) uint32 {
	if n := len(s.free); n > 0 {
		tag := s.free[n-1]
		s.free = s.free[:n-1]
		s.slots[tag] = cl
		return tag
	}
	s.slots = append(s.slots, cl)
	return uint32(len(s.slots) - 1)
}

// receive handles one frame.
func (s *session) receive(in *input) error {
	t, body, err := in.next(s.touch)
	if err != nil {
		return err
	}
	switch t {
	case wire.TypeResults:
		return s.results(body)
	case wire.TypeStale:
		return s.stale(in, body)
	case wire.TypeMap:
		m, err := wire.DecodeMap(body)
		if err != nil {
			return err
		}
		s.c.learn(routesOf(m, s.address))
		return nil
	case wire.TypeGoodbye:
		bye, err := wire.DecodeGoodbye(body)
		if err != nil {
			return err
		}
		return bye
	}
	return fmt.Errorf("the server sent a %s frame in the middle of a session", t)
}

// results completes the calls that a frame answers.
func (s *session) results(body []byte) error {
	rs, err := wire.DecodeResults(body)
	if err != nil {
		return err
	}
	s.mu.Lock()
	for rs.More() && err == nil {
		s.answers = append(s.answers, answer{})
		a := &s.answers[len(s.answers)-1]
		if err = rs.Next(&a.r); err == nil {
			a.cl, err = s.take(a.r.Tag)
		}
	}
	s.room.Broadcast()
	s.kick()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for i := range s.answers {
		if a := &s.answers[i]; a.cl != orphan {
			s.c.answered(s, a.cl, &a.r)
		}
		s.answers[i] = answer{}
	}
	s.answers = s.answers[:0]
	return nil
}

// orphan stands in a slot whose call was given up.
var orphan = &call{}

// take empties a slot.
func (s *session) take(tag uint32) (*call, error) {
	if int(tag) >= len(s.slots) || s.slots[tag] == nil {
		return nil, fmt.Errorf("the server answered operation %d, which it was not sent", tag)
	}
	cl := s.slots[tag]
	s.slots[tag] = nil
	s.free = append(s.free, tag)
	if cl != orphan {
		s.settle(cl)
	}
	return cl, nil
}

// settle takes a call out of its batch.
func (s *session) settle(cl *call) {
	b := cl.batch
	b.calls[cl.index], cl.batch = nil, nil
	b.left--
	if b.left == 0 {
		s.unheard -= b.bytes
		delete(s.batches, b.number)
	}
}

// stale sends a batch again that was rejected whole, with the map that follows it.
func (s *session) stale(in *input, body []byte) error {
	st, err := wire.DecodeStale(body)
	if err != nil {
		return err
	}
	s.c.stats.stale.Add(1)
	mapBody, err := in.expect(wire.TypeMap)
	if err != nil {
		return err
	}
	m, err := wire.DecodeMap(mapBody)
	if err != nil {
		return err
	}
	s.mu.Lock()
	bt := s.batches[st.Number]
	if bt == nil {
		s.mu.Unlock()
		return fmt.Errorf("the server rejected batch %d, which it was not sent", st.Number)
	}
	calls := s.unsent(bt)
	ahead := m.Revision > bt.revision
	s.mu.Unlock()
	s.c.learn(routesOf(m, s.address))
	for _, cl := range calls {
		if ahead {
			cl.attempts = 0 // Something has changed: there is no reason to wait.
		}
		s.c.again(cl, errStale)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.Broadcast()
	s.kick()
	return nil
}

var (
	errStale = errors.New("ownership is changing")
	errMoved = errors.New("the key's owner has changed")
	errBusy  = errors.New("the owner's records are still arriving")
)

// unsent takes back the calls of a batch that was not executed.
func (s *session) unsent(bt *batch) []*call {
	var calls []*call
	for _, cl := range bt.calls {
		if cl != nil {
			s.slots[cl.op.Tag] = nil
			s.free = append(s.free, cl.op.Tag)
			s.settle(cl)
			calls = append(calls, cl)
		}
	}
	return calls
}

// fail ends the session. What was sent may have been executed; all of it is tried again.
func (s *session) fail(err error) {
	s.mu.Lock()
	if s.over != nil {
		s.mu.Unlock()
		return
	}
	s.over = err
	if s.conn != nil {
		_ = s.conn.Close()
	}
	s.linger.Stop()
	queue := s.queue
	var sent []*call
	for _, cl := range s.slots {
		if cl != nil && cl != orphan {
			cl.batch, cl.lost = nil, true
			sent = append(sent, cl)
		}
	}
	s.queue, s.slots, s.free, s.batches = nil, nil, nil, map[uint32]*batch{}
	s.room.Broadcast()
	s.mu.Unlock()
	s.w.forget(s)
	s.c.wantMap()
	for _, cl := range append(sent, queue...) {
		s.c.again(cl, err)
	}
}
