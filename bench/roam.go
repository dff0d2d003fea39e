package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/engine/record"
)

// roamer is a cluster client under a paced load: operations are due at the moments of a Poisson process, go to the
// node that owns their slot as far as the client knows, and follow MOVED and ASK as any cluster client
// does, which also reads the map anew then. Each goes over a connection that is free. When none is they share connections, as far as
// the depth allows, and what is due at once goes with one write: so do clients that have one connection for all who use them,
// ioredis and Lettuce among them. One thread drives all connections through epoll. A latency counts from when its
// operation was due until the last answer, redirections and retries included.
//
// It belongs to one goroutine, but for what is told by channels.
type roamer struct {
	nodes []roamNode
	owner slotOwners
	maps  *roamMap
	epoll int
	conns []*roamConn
	depth int         // operations on a connection at the most
	dirty []*roamConn // have something to be sent
	buf   [64 << 10]byte

	keys  []uint32 // records that are asked for
	draw  func() uint32
	value []byte
	rng   *rand.Rand

	began  time.Time
	trail  roamTrail
	open   int // operations that were sent, or wait to be, and have no answer
	moved  int64
	asked  int64
	errors map[string]int64
}

// roamNode is a node of the cluster.
type roamNode struct {
	addr    string
	conns   []*roamConn
	idle    []*roamConn
	turn    int      // of conns, whose turn it is to be shared
	room    int      // for so many operations more
	waiting []roamOp // due, and there is none
}

// roamOp is one operation.
type roamOp struct {
	id    uint32
	write bool
	ask   bool // with ASKING, whose answer comes first
	due   time.Time
}

// roamPoint is one that was answered.
type roamPoint struct{ at, took time.Duration }

// roamTrail is all that were. It grows by pieces: a slice that doubles would be copied in the middle of what is measured.
type roamTrail [][]roamPoint

const trailPiece = 1 << 14

func (t *roamTrail) add(p roamPoint) {
	last := len(*t) - 1
	if last < 0 || len((*t)[last]) == trailPiece {
		*t = append(*t, make([]roamPoint, 0, trailPiece))
		last++
	}
	(*t)[last] = append((*t)[last], p)
}

type roamConn struct {
	fd    int
	node  int
	index int
	ops   []roamOp // without an answer, in their order
	out   []byte   // to be sent; some if it is in dirty
	in    []byte
}

// roamTotal is what a roamer saw.
type roamTotal struct {
	trail        []roamPoint
	moved, asked int64
	errors       map[string]int64
	late         int // operations that were due and not answered within the patience after the end
}

// newRoamer connects to all nodes, so many times each. owner tells at first who owns each slot.
func newRoamer(addrs []string, owner slotOwners, clients, depth int, keys []uint32, draw func() uint32, value int) (*roamer, error) {
	maps, err := newRoamMap(addrs)
	if err != nil {
		return nil, err
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		maps.close()
		return nil, fmt.Errorf("create an epoll instance: %w", err)
	}
	r := &roamer{maps: maps, epoll: epoll, depth: depth, owner: owner, keys: keys, draw: draw, value: make([]byte, value), rng: rand.New(rand.NewPCG(1, 2)), errors: map[string]int64{}}
	for n, addr := range addrs {
		r.nodes = append(r.nodes, roamNode{addr: addr})
		for range clients {
			if err := r.connect(n); err != nil {
				r.close()
				return nil, err
			}
		}
	}
	return r, nil
}

func (r *roamer) connect(node int) error {
	fd, err := dialFD(r.nodes[node].addr)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", r.nodes[node].addr, err)
	}
	c := &roamConn{fd: fd, node: node, index: len(r.conns)}
	r.conns = append(r.conns, c)
	n := &r.nodes[node]
	n.conns, n.idle, n.room = append(n.conns, c), append(n.idle, c), n.room+r.depth
	return unix.EpollCtl(r.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.index)})
}

func (r *roamer) close() {
	for _, c := range r.conns {
		unix.Close(c.fd)
	}
	unix.Close(r.epoll)
	r.maps.close()
}

// run sends perSecond operations, or as many as are answered if that is 0, until the context ends.
func (r *roamer) run(ctx context.Context, perSecond float64, writes float64) (roamTotal, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer punctual()()
	r.began, r.trail = time.Now(), nil
	due := r.began
	events := make([]unix.EpollEvent, 256)
	for ctx.Err() == nil {
		now := time.Now()
		if perSecond > 0 {
			for !due.After(now) {
				r.place(roamOp{id: r.draw(), write: r.rng.Float64() < writes, due: due})
				due = due.Add(time.Duration(r.rng.ExpFloat64() * 1e9 / perSecond))
			}
		} else {
			due = now.Add(10 * time.Millisecond)
			r.saturate(now, writes)
		}
		r.flush()
		if err := r.wait(events, time.Until(due)); err != nil {
			return roamTotal{}, err
		}
	}
	// Who was due is waited for: else what is slowest would be left out.
	for until := time.Now().Add(roamPatience); r.open > 0 && time.Now().Before(until); {
		if err := r.wait(events, 10*time.Millisecond); err != nil {
			return roamTotal{}, err
		}
	}
	return roamTotal{trail: slices.Concat(r.trail...), moved: r.moved, asked: r.asked, errors: r.errors, late: r.open}, nil
}

// roamPatience is how long answers are waited for when no more operations are due.
const roamPatience = 10 * time.Second

// saturate gives an operation to as many connections as one node has: the load is on one node at first.
func (r *roamer) saturate(now time.Time, writes float64) {
	for range r.conns {
		op := roamOp{id: r.draw(), write: r.rng.Float64() < writes, due: now}
		if n := &r.nodes[r.ownerOf(op.id)]; len(n.idle) == 0 {
			return
		}
		r.place(op)
	}
}

func (r *roamer) ownerOf(id uint32) uint8 {
	var key [32]byte
	k := key[:workload.Text30.Len()]
	workload.Text30.Put(k, uint64(r.keys[id]))
	return r.owner[record.SlotOf(k)]
}

// place sends an operation to the owner of its key, or has it wait there.
func (r *roamer) place(op roamOp) {
	r.open++
	r.placeAt(int(r.ownerOf(op.id)), op)
}

func (r *roamer) placeAt(node int, op roamOp) {
	n := &r.nodes[node]
	if n.room == 0 {
		n.waiting = append(n.waiting, op)
		return
	}
	n.room--
	r.put(n.free(r.depth), op)
}

// free is a connection for one operation more; there is one. Of those that are not idle all have their turn.
func (n *roamNode) free(depth int) *roamConn {
	if last := len(n.idle) - 1; last >= 0 {
		c := n.idle[last]
		n.idle = n.idle[:last]
		return c
	}
	for {
		c := n.conns[n.turn]
		if n.turn++; n.turn == len(n.conns) {
			n.turn = 0
		}
		if len(c.ops) < depth {
			return c
		}
	}
}

// put has an operation be sent over a connection with the next flush.
func (r *roamer) put(c *roamConn, op roamOp) {
	c.ops = append(c.ops, op)
	if len(c.out) == 0 {
		r.dirty = append(r.dirty, c)
	}
	if op.ask {
		c.out = append(c.out, "*1\r\n$6\r\nASKING\r\n"...)
	}
	var key [32]byte
	k := key[:workload.Text30.Len()]
	workload.Text30.Put(k, uint64(r.keys[op.id]))
	if op.write {
		workload.FillValue(r.value, uint64(r.keys[op.id]), 0)
		c.out = append(c.out, "*3\r\n$3\r\nSET\r\n$30\r\n"...)
		c.out = append(append(c.out, k...), "\r\n$"...)
		c.out = append(strconv.AppendInt(c.out, int64(len(r.value)), 10), "\r\n"...)
		c.out = append(append(c.out, r.value...), "\r\n"...)
	} else {
		c.out = append(c.out, "*2\r\n$3\r\nGET\r\n$30\r\n"...)
		c.out = append(append(c.out, k...), "\r\n"...)
	}
}

// flush sends all that is to be sent.
func (r *roamer) flush() {
	for _, c := range r.dirty {
		if n, err := unix.Write(c.fd, c.out); err != nil || n < len(c.out) {
			r.errors["requests of a few bytes were not sent"]++ // The socket is all but empty: it is broken.
		}
		c.out = c.out[:0]
	}
	r.dirty = r.dirty[:0]
}

// wait takes replies until the next operation is due.
func (r *roamer) wait(events []unix.EpollEvent, d time.Duration) error {
	n, err := waitNanos(r.epoll, events, max(d, 0))
	if err != 0 && err != unix.EINTR {
		return fmt.Errorf("wait for replies: %w", err)
	}
	for _, ev := range events[:n] {
		if err := r.receive(r.conns[ev.Fd]); err != nil {
			return err
		}
	}
	r.flush()
	if news := r.maps.news.Swap(nil); news != nil {
		r.owner = *news
	}
	return nil
}

// receive reads what has come, and takes all whole replies of it.
func (r *roamer) receive(c *roamConn) error {
	n, err := unix.Read(c.fd, r.buf[:])
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return nil
	case err != nil || n == 0:
		return fmt.Errorf("%s closed a connection", r.nodes[c.node].addr)
	}
	c.in = append(c.in, r.buf[:n]...)
	left := c.in
	for len(c.ops) > 0 {
		size := replySize(left)
		if size == 0 {
			break
		}
		r.take(c, left[:size])
		left = left[size:]
	}
	c.in = c.in[:copy(c.in, left)]
	r.sendWaiting(c.node)
	return nil
}

// take takes the next reply of a connection.
func (r *roamer) take(c *roamConn, reply []byte) {
	op := &c.ops[0]
	if op.ask {
		op.ask = false // That was ASKING's.
		return
	}
	done := *op
	c.ops = c.ops[:copy(c.ops, c.ops[1:])]
	n := &r.nodes[c.node]
	if n.room++; len(c.ops) == 0 {
		n.idle = append(n.idle, c)
	}
	r.answered(c, done, reply)
}

// replySize is how long the first reply is, 0 if it is not all there. There are only simple strings, errors and bulks.
func replySize(b []byte) int {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 0 {
		return 0
	}
	if b[0] != '$' {
		return end + 2
	}
	n, _ := strconv.Atoi(string(b[1:end]))
	if n < 0 {
		return end + 2
	}
	if len(b) < end+2+n+2 {
		return 0
	}
	return end + 2 + n + 2
}

// answered counts an operation, or sends it elsewhere.
func (r *roamer) answered(c *roamConn, op roamOp, reply []byte) {
	switch {
	case reply[0] == '-':
		r.placeAt(r.redirect(c, &op, reply), op)
		return
	case reply[0] == '$' && reply[1] == '-':
		r.errors["a record is missing"]++
	}
	now := time.Now()
	r.trail.add(roamPoint{now.Sub(r.began), now.Sub(op.due)})
	r.open--
}

// sendWaiting lets operations go that wait at a node, as long as there is room. Those whose keys have moved go
// to where they are now, all of them: nobody may be answered here any more who would look for them.
func (r *roamer) sendWaiting(node int) {
	n := &r.nodes[node]
	for len(n.waiting) > 0 && n.room > 0 {
		next := n.waiting[0]
		n.waiting = n.waiting[1:]
		at := node
		if !next.ask {
			at = int(r.ownerOf(next.id))
		}
		r.placeAt(at, next)
	}
}

// redirect says where an operation goes that was refused.
func (r *roamer) redirect(c *roamConn, op *roamOp, reply []byte) int {
	text := strings.TrimSpace(string(reply[1:]))
	words := strings.Fields(text)
	if len(words) == 3 && (words[0] == "MOVED" || words[0] == "ASK") {
		slot, _ := strconv.Atoi(words[1])
		for i := range r.nodes {
			if r.nodes[i].addr != words[2] {
				continue
			}
			if words[0] == "ASK" {
				r.asked++
				op.ask = true
			} else {
				r.moved++
				r.owner[slot] = uint8(i)
				r.maps.want(c.node)
			}
			return i
		}
	}
	if len(words) == 0 || words[0] != "TRYAGAIN" {
		r.errors[text]++
	}
	return int(r.ownerOf(op.id))
}
