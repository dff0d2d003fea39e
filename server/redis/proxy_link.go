package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/wire/resp"
)

const (
	linkConnectTime = 5 * time.Second
	linkPostMost    = 128      // answers that go to the loop at once
	linkBlockBytes  = 16 << 10 // memory that small answers share
)

// link is a connection to another node that carries commands of many clients,
// pipelined. The commands of one client to one node go over one link, so that they
// keep their order; a client that watches keys has one of its own.
//
// The loop appends parcels; two goroutines write and read. Replies come in the order
// of the parcels. When the link ends, the parcels that are left go back to the loop,
// each with what is known of its fate.
type link struct {
	srv    *Server
	to     Node
	who    identity // as whom it speaks there
	proto  int
	give   func(*link, []*parcel, error) // hands parcels back, from other goroutines
	cancel context.CancelFunc
	ctx    context.Context

	mu      sync.Mutex
	work    sync.Cond // there is something to write, or the link is over
	out     []byte    // not given to the socket yet
	queue   []*parcel // have no answer yet
	queued  int64     // bytes that were ever appended to out
	started int64     // of these, bytes that may have left
	conn    net.Conn
	over    bool

	used int64 // when a client's command last went over it; the loop's
}

// fate is what became of a parcel.
type fate uint8

const (
	answered fate = iota
	unsent        // it never left
	lost          // it may have been executed or not
)

// parcel is commands that go to another node together. Of their replies the last one
// counts.
type parcel struct {
	hop     *hop
	place   record.Place // goes to whose this is
	node    view.NodeID  // or to this one
	body    []byte
	replies int  // that the body gets
	asking  bool // the node was told to import it

	fate  fate
	left  int // replies that have not come
	begin int64
	reply []byte
	moved bool // one of the replies before the last said that nothing runs here
}

// openLink begins to connect; parcels may be sent at once.
func (s *Server) openLink(to Node, who identity, proto int, give func(*link, []*parcel, error)) *link {
	k := &link{srv: s, to: to, who: who, proto: proto, give: give}
	k.work.L = &k.mu
	k.ctx, k.cancel = context.WithCancel(context.Background())
	s.links.Go(k.run)
	return k
}

// send appends a parcel; false if the link is over.
func (k *link) send(p *parcel) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return false
	}
	p.begin, p.left, p.moved = k.queued, p.replies, false
	before := len(k.out)
	if p.asking {
		k.out = resp.AppendCommand(k.out, "asking")
		p.left++
	}
	k.out = append(k.out, p.body...)
	k.queued += int64(len(k.out) - before)
	k.queue = append(k.queue, p)
	k.work.Signal()
	return true
}

// close ends the link. Its parcels come back.
func (k *link) close() {
	k.cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	if k.conn != nil {
		_ = k.conn.Close() // which ends the goroutines
	}
	k.work.Broadcast()
}

// isOver tells whether nothing can be sent any more.
func (k *link) isOver() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.over
}

func (k *link) run() {
	err := k.connect()
	if err == nil {
		var writing sync.WaitGroup
		writing.Go(k.write)
		err = k.read()
		k.close()
		writing.Wait()
	}
	k.close()
	k.mu.Lock()
	rest := k.queue
	k.queue = nil
	for _, p := range rest {
		p.fate = lost
		if p.begin >= k.started {
			p.fate = unsent
		}
	}
	k.mu.Unlock()
	k.give(k, rest, err)
}

// connect dials and introduces itself. Nothing that clients sent has left before.
func (k *link) connect() error {
	ctx, cancel := context.WithTimeout(k.ctx, linkConnectTime)
	defer cancel()
	conn, err := k.srv.dialNode(ctx, k.to)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", k.to.ID, err)
	}
	k.mu.Lock()
	k.conn = conn
	over := k.over
	k.mu.Unlock()
	if over {
		_ = conn.Close()
		return errors.New("closed")
	}
	_ = conn.SetDeadline(time.Now().Add(linkConnectTime))
	if err := k.introduce(conn); err != nil {
		return fmt.Errorf("introducing itself to %s: %w", k.to.ID, err)
	}
	return conn.SetDeadline(time.Time{})
}

func (k *link) introduce(conn net.Conn) error {
	var hello []byte
	n := 1
	if password := *k.srv.settings.requirePass.Load(); password != "" {
		hello = resp.AppendCommand(hello, "auth", password)
		n++
	}
	if k.proto == 3 {
		hello = resp.AppendCommand(hello, "hello", "3")
		n++
	}
	hello = resp.AppendCommand(hello, k.who.forwarded()...)
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	in := resp.NewReplyReader(conn)
	for range n {
		v, err := in.Read()
		if err == nil {
			err = v.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write sends what there is, until the link is over.
func (k *link) write() {
	var spare []byte
	for {
		k.mu.Lock()
		for len(k.out) == 0 && !k.over {
			k.work.Wait()
		}
		if k.over {
			k.mu.Unlock()
			return
		}
		b := k.out
		k.out = spare[:0]
		k.started = k.queued
		// Silence for longer than a command may wait at its owner is no life.
		_ = k.conn.SetReadDeadline(time.Now().Add(2*k.srv.cfg.ClusterWait + linkConnectTime))
		k.mu.Unlock()
		if _, err := k.conn.Write(b); err != nil {
			_ = k.conn.Close() // the reader tells
			return
		}
		spare = idleBuffer(b)
	}
}

// read hands answers to the loop until the connection ends.
func (k *link) read() error {
	in := resp.NewReplyReader(k.conn)
	var done []*parcel
	var block []byte
	for {
		if cap(block)-len(block) < linkBlockBytes/8 {
			block = make([]byte, 0, linkBlockBytes)
		}
		start, err := len(block), error(nil)
		if block, err = in.ReadRaw(block); err == nil {
			done, err = k.take(done, block[start:len(block):len(block)])
		}
		if len(done) > 0 && (err != nil || in.Buffered() == 0 || len(done) >= linkPostMost) {
			k.give(nil, done, nil)
			done = nil
		}
		if err != nil {
			return err
		}
	}
}

// take gives a reply to the first parcel that waits, and adds that to done if it
// was its last.
func (k *link) take(done []*parcel, reply []byte) ([]*parcel, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.queue) == 0 {
		return done, errors.New("a reply that nobody waits for")
	}
	p := k.queue[0]
	if p.left--; p.left > 0 {
		p.moved = p.moved || sendsAway(reply)
		return done, nil
	}
	p.fate, p.reply = answered, reply
	k.queue[0] = nil
	if k.queue = k.queue[1:]; len(k.queue) == 0 {
		k.queue = nil
		_ = k.conn.SetReadDeadline(time.Time{})
	}
	return append(done, p), nil
}

// isError tells whether a reply is an error of a code.
func isError(reply []byte, code string) bool {
	return len(reply) > len(code)+1 && reply[0] == '-' && string(reply[1:1+len(code)]) == code && reply[1+len(code)] == ' '
}

// sendsAway tells whether a reply says that the node does not execute the command.
func sendsAway(reply []byte) bool {
	return len(reply) > 0 && reply[0] == '-' &&
		(isError(reply, "MOVED") || isError(reply, "ASK") || isError(reply, "CLUSTERDOWN") || isError(reply, "TRYAGAIN"))
}

// linkKey is what the loop's links are told apart by.
type linkKey struct {
	node  view.NodeID
	addr  string
	who   identity
	proto int
	lane  uint64
}

// linkLanes is how many links a loop has to a node, so that a command which waits
// for the disk there holds up few others.
const linkLanes = 4

// link is the loop's link to a node for a client; it opens one if there is none. again tells
// that there was one which has ended: its parcels may still be on their way back.
func (l *loop) link(n Node, c *conn) (k *link, again bool) {
	proto := c.out.Proto()
	key := linkKey{n.ID, n.Address + n.TLSAddress, c.identity(), proto, c.id % linkLanes}
	k = l.links[key]
	if k != nil && !k.isOver() {
		k.used = l.now
		return k, false
	}
	again = k != nil
	k = l.openLink(n, key.who, proto)
	if l.links == nil {
		l.links = make(map[linkKey]*link)
	}
	l.links[key] = k
	return k, again
}

// openLink opens a link that the loop knows of until it has ended.
func (l *loop) openLink(n Node, who identity, proto int) *link {
	k := l.srv.openLink(n, who, proto, l.takeParcels)
	k.used = l.now
	if l.allLinks == nil {
		l.allLinks = make(map[*link]struct{})
	}
	l.allLinks[k] = struct{}{}
	return k
}

// takeParcels brings parcels back to the loop. If the loop has ended, so have its clients.
func (l *loop) takeParcels(ended *link, parcels []*parcel, err error) {
	l.post(message{run: func() {
		delete(l.allLinks, ended)
		if ended != nil && len(parcels) > 0 {
			l.srv.log.Debug("a connection to another node ended", "node", ended.to.ID, "address", ended.to.Address, "commands", len(parcels), "error", err)
		}
		for _, p := range parcels {
			l.arrive(p)
		}
	}})
}

// closeDeadLinks ends links to nodes that are gone or have moved, so that nobody
// waits for answers that cannot come.
func (l *loop) closeDeadLinks() {
	r := l.srv.cfg.Cluster.Routing()
	for key, k := range l.links {
		n, known := r.nodes[key.node]
		if !known || !n.Alive || n.Address+n.TLSAddress != key.addr {
			k.close()
			delete(l.links, key)
		}
	}
}

// closeLinks ends all links, for the loop ends.
func (l *loop) closeLinks() {
	for k := range l.allLinks {
		k.close()
	}
	l.links, l.allLinks = nil, nil
}
