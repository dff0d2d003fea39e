package bench

import (
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/wire"
)

// fleet is native sessions of many tenants, one each, that one thread drives through epoll. What it
// sends are errands: a batch of operations of one tenant. An operation may take several round trips;
// the next steps of those that are answered together are sent together, so that whoever needs two
// trips has as large batches as who needs one.
//
// A fleet belongs to one goroutine.
type fleet struct {
	epoll  int
	conns  []fleetConn
	events []unix.EpollEvent
	buf    []byte // what is read into
	out    []byte // what is being made
	steps  int    // operations in a batch of next steps that is being made

	errands []errand
	idle    []int // errands that nobody is on
	o       *order
	total   fleetTotal
	owed    int    // answers to bad operations
	last    uint64 // sequence number that was given
	latency *workload.Latency
}

// fleetConn is a tenant's session.
type fleetConn struct {
	fd       int
	view     uint64
	in       []byte // of a frame that has not come whole
	unsent   []byte
	watched  bool   // epoll tells when the socket takes more
	errands  int    // under way
	acked    uint64 // all operations with smaller sequence numbers are answered
	numbered bool   // some had one since that was said
}

// errand is a batch of operations under way: left of them are not done.
type errand struct {
	conn   int
	left   int
	began  time.Time
	chores []chore
}

// chore is one operation while it is under way; what its words mean is its job's business.
type chore struct {
	tenant int
	id     uint32
	kind   uint8
	aside  bool   // it counts, but not in latencies
	number uint64 // its sequence number, if it is to have one,
	once   bool   // and then its job says so
}

// job is what a fleet does. It may keep state, for one thread calls it.
type job interface {
	// first appends the first step of an operation of c.tenant, which it chooses.
	first(b []byte, c *chore, tag uint32) []byte
	// then takes a step's result, and appends the next step if there are more.
	then(b []byte, c *chore, r *wire.Result) (out []byte, more bool, err error)
}

// order is what to do, and for how long.
type order struct {
	job    job
	tenant func() int // whose the next errand is; negative: that was all
	batch  int
	window int // errands under way at most
	// perSecond is how many operations become due a second, by a Poisson process of errands; 0: as
	// many as are answered.
	perSecond float64
	duration  time.Duration // 0: until tenant says so
	// every so many operations, and with the first, a bad deed is done in the name of one of the last bad sessions; 0: never.
	every int
	deed  func(*fleet) error
	bad   int
}

// fleetTotal is what came of an order.
type fleetTotal struct {
	Ops     uint64
	Elapsed time.Duration
	Late    int // operations that were due and not begun when the time was over
	Begun   int // bad ones, that nobody waits for
	Ended   int // of them, that were answered
}

// badTag is that of bad operations: nobody waits for them.
const badTag = 1<<32 - 1

// fleetMember is who a session is of.
type fleetMember struct{ name, password string }

// dialFleet opens a session for each member.
func dialFleet(addr string, members []fleetMember) (*fleet, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create an epoll instance: %w", err)
	}
	f := &fleet{epoll: epoll, events: make([]unix.EpollEvent, 256), buf: make([]byte, loadBuffer), latency: workload.NewLatency()}
	for i, m := range members {
		if err := f.dial(addr, m, i); err != nil {
			f.close()
			return nil, fmt.Errorf("open a session of %s: %w", m.name, err)
		}
	}
	return f, nil
}

func (f *fleet) dial(addr string, m fleetMember, i int) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	view, err := greetAs(c, addr, m)
	if err != nil {
		_ = c.Close()
		return err
	}
	fd, err := takeFD(c)
	if err != nil {
		return err
	}
	f.conns = append(f.conns, fleetConn{fd: fd, view: view})
	return unix.EpollCtl(f.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)})
}

func (f *fleet) close() {
	for i := range f.conns {
		unix.Close(f.conns[i].fd)
	}
	unix.Close(f.epoll)
}

// begin sends an errand of a tenant.
func (f *fleet) begin(tenant int, due time.Time) error {
	at := f.idle[len(f.idle)-1]
	f.idle = f.idle[:len(f.idle)-1]
	e := &f.errands[at]
	e.conn, e.left, e.began = tenant, f.o.batch, due
	c := &f.conns[tenant]
	if c.errands == 0 && c.numbered { // As clients do: what only reads has no numbers.
		c.acked, c.numbered = f.last+1, false
	}
	c.errands++
	start := f.open(tenant)
	for i := range e.chores {
		f.last++
		e.chores[i] = chore{tenant: tenant, number: f.last}
		f.out = f.o.job.first(f.out, &e.chores[i], tagOf(at, i))
		c.numbered = c.numbered || e.chores[i].once
	}
	f.out = wire.EndBatch(f.out, start, f.o.batch)
	return f.send(tenant)
}

// mostBatch is how many operations an errand has at most: their numbers are a tag's low byte.
const mostBatch = 256

func tagOf(errand, i int) uint32 { return uint32(errand)*mostBatch + uint32(i) }

// open begins a batch of a tenant.
func (f *fleet) open(tenant int) (start int) {
	f.out, start = wire.BeginBatch(f.out[:0], &wire.Batch{View: f.conns[tenant].view, Client: 1, Acked: f.conns[tenant].acked})
	return start
}

// send sends what was made, as far as the socket takes it.
func (f *fleet) send(conn int) error {
	c := &f.conns[conn]
	if len(c.unsent) > 0 {
		c.unsent = append(c.unsent, f.out...)
		return nil
	}
	n, err := unix.Write(c.fd, f.out)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		n = 0
	case err != nil:
		return fmt.Errorf("send a batch: %w", err)
	}
	c.unsent = append(c.unsent[:0], f.out[n:]...)
	return f.watch(c, conn)
}

// flush sends what is left.
func (f *fleet) flush(conn int) error {
	c := &f.conns[conn]
	n, err := unix.Write(c.fd, c.unsent)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		n = 0
	case err != nil:
		return fmt.Errorf("send a batch: %w", err)
	}
	c.unsent = append(c.unsent[:0], c.unsent[n:]...)
	return f.watch(c, conn)
}

// watch has epoll tell when the socket takes more, if there is more.
func (f *fleet) watch(c *fleetConn, conn int) error {
	more := len(c.unsent) > 0
	if more == c.watched {
		return nil
	}
	c.watched = more
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(conn)}
	if more {
		ev.Events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(f.epoll, unix.EPOLL_CTL_MOD, c.fd, &ev)
}

// receive reads what has come, and sends the next steps of what it answers.
func (f *fleet) receive(conn int) error {
	c := &f.conns[conn]
	n, err := unix.Read(c.fd, f.buf)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return nil
	case err != nil:
		return fmt.Errorf("read answers: %w", err)
	case n == 0:
		return errHungUp
	}
	b := f.buf[:n]
	if len(c.in) > 0 {
		c.in = append(c.in, b...)
		b = c.in
	}
	start := f.open(conn)
	now := time.Now()
	f.steps = 0
	for {
		t, body, n, _, err := wire.Next(b, wire.MaxFrameBytes)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		b = b[n:]
		if t != wire.TypeResults {
			return fmt.Errorf("the server sent a %s frame: ownership has changed, or the session is over", t)
		}
		if err := f.results(body, now); err != nil {
			return err
		}
	}
	c.in = append(c.in[:0], b...)
	if f.steps == 0 {
		return nil
	}
	f.out = wire.EndBatch(f.out, start, f.steps)
	return f.send(conn)
}

var errNobodyAsked = errors.New("the server sent a result that nobody asked for")

// results takes a frame of them.
func (f *fleet) results(body []byte, now time.Time) error {
	rs, err := wire.DecodeResults(body)
	if err != nil {
		return err
	}
	var r wire.Result
	ended, last := 0, -1 // how many operations of the errand that was last looked at have ended
	for rs.More() {
		if err := rs.Next(&r); err != nil {
			return err
		}
		if r.Tag == badTag {
			f.total.Ended++
			f.owed--
			continue
		}
		at, i := int(r.Tag/mostBatch), int(r.Tag%mostBatch)
		if at >= len(f.errands) || i >= len(f.errands[at].chores) || f.errands[at].left == 0 {
			return errNobodyAsked
		}
		if at != last {
			f.count(last, ended, now)
			ended, last = 0, at
		}
		out, more, err := f.o.job.then(f.out, &f.errands[at].chores[i], &r)
		if err != nil {
			return err
		}
		switch f.out = out; {
		case more:
			f.steps++
		case f.errands[at].chores[i].aside:
			f.ended(at, 1)
		default:
			ended++
		}
	}
	f.count(last, ended, now)
	return nil
}

// count takes operations that have ended into the totals.
func (f *fleet) count(at, ended int, now time.Time) {
	if ended == 0 {
		return
	}
	f.latency.Record(int64(now.Sub(f.errands[at].began)), int64(ended))
	f.ended(at, ended)
}

func (f *fleet) ended(at, n int) {
	e := &f.errands[at]
	f.total.Ops += uint64(n)
	if e.left -= n; e.left == 0 {
		f.conns[e.conn].errands--
		f.idle = append(f.idle, at)
	}
}
