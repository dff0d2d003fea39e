package client_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/wire"
)

// fake is a server that says what a test tells it to. Real servers are tested with this client in
// server/session; here it is about what goes over the wire, and when.
type fake struct {
	t       *testing.T
	l       net.Listener
	welcome wire.Welcome
	batches chan *fakeBatch

	mu    sync.Mutex
	conns map[net.Conn]bool
	over  sync.WaitGroup
	known *wire.Map // nil: it owns everything
}

// fakeBatch is a batch that waits for what the test does about it.
type fakeBatch struct {
	conn net.Conn
	head wire.Batch
	ops  []wire.Op
}

func newFake(t *testing.T) *fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := newPiped(t)
	f.l = l
	f.over.Go(f.accept)
	return f
}

// newPiped is one without a listener, for clients that dial by pipe.
func newPiped(t *testing.T) *fake {
	f := &fake{
		t: t, batches: make(chan *fakeBatch, 1000), conns: map[net.Conn]bool{},
		welcome: wire.Welcome{Version: wire.Version, MaxFrame: 1 << 20, MaxOps: 1 << 16, LeaseMillis: 180_000},
	}
	t.Cleanup(f.close)
	return f
}

// pipe is a connection of which the kernel knows nothing.
func (f *fake) pipe(context.Context, string, string) (net.Conn, error) {
	theirs, ours := net.Pipe()
	f.greet(ours)
	return theirs, nil
}

func (f *fake) close() {
	if f.l != nil {
		_ = f.l.Close()
	}
	f.mu.Lock()
	for c := range f.conns {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.over.Wait()
}

func (f *fake) accept() {
	for {
		c, err := f.l.Accept()
		if err != nil {
			return
		}
		f.greet(c)
	}
}

func (f *fake) greet(c net.Conn) {
	f.mu.Lock()
	f.conns[c] = true
	f.mu.Unlock()
	f.over.Go(func() { f.serve(c) })
}

func (f *fake) serve(c net.Conn) {
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, len(wire.Magic))); err != nil {
		return
	}
	if _, _, err := f.read(c); err != nil {
		return
	}
	f.mu.Lock()
	hello, known := wire.AppendWelcome(nil, &f.welcome), f.known
	f.mu.Unlock()
	if known == nil {
		known = f.everything(1)
	}
	if _, err := c.Write(wire.AppendMap(hello, known)); err != nil {
		return
	}
	for {
		t, body, err := f.read(c)
		if err != nil {
			return
		}
		if t != wire.TypeBatch {
			continue
		}
		o, err := wire.DecodeBatch(body)
		if err != nil {
			f.t.Error(err)
			return
		}
		b := &fakeBatch{conn: c, head: o.Batch}
		for o.More() {
			var op wire.Op
			if err := o.Next(&op); err != nil {
				f.t.Error(err)
				return
			}
			b.ops = append(b.ops, op)
		}
		f.batches <- b
	}
}

// everything is a map in which this server owns all, in the view of its revision.
func (f *fake) everything(revision uint64) *wire.Map {
	return &wire.Map{
		Revision: revision, Nodes: []wire.Node{{ID: "fake", View: view.ViewID(revision)}}, Spans: []wire.Span{{Last: view.Whole.Last}},
	}
}

func (f *fake) read(c net.Conn) (wire.Type, []byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, nil, err
	}
	body := make([]byte, binary.LittleEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, body); err != nil {
		return 0, nil, err
	}
	return wire.Type(body[0]), body[1:], nil
}

// answer sends results for operations of a batch.
func (b *fakeBatch) answer(t *testing.T, st wire.Status, which ...int) {
	t.Helper()
	b.send(t, b.results(st, which))
}

func (b *fakeBatch) results(st wire.Status, which []int) []byte {
	out, start := wire.BeginResults(nil)
	for _, i := range which {
		out = wire.AppendResult(out, &wire.Result{Tag: b.ops[i].Tag, Status: st, Value: b.ops[i].Key})
	}
	return wire.EndResults(out, start, len(which))
}

func (b *fakeBatch) all(t *testing.T) {
	t.Helper()
	b.answer(t, wire.OK, b.each()...)
}

// tryAll is all, of a client that may have left.
func (b *fakeBatch) tryAll() { _, _ = b.conn.Write(b.results(wire.OK, b.each())) }

func (b *fakeBatch) each() []int {
	which := make([]int, len(b.ops))
	for i := range which {
		which[i] = i
	}
	return which
}

func (b *fakeBatch) send(t *testing.T, frame []byte) {
	t.Helper()
	if _, err := b.conn.Write(frame); err != nil {
		t.Fatal(err)
	}
}

// dial connects a client and lets it open its session.
func (f *fake) dial(o client.Options) *client.Client {
	f.t.Helper()
	if o.SessionTimeout == 0 {
		o.SessionTimeout = time.Minute // A slow machine sends no pings then.
	}
	address := "piped:1"
	if f.l != nil {
		address = f.l.Addr().String()
	}
	var c *client.Client
	await.True(f.t, "a client is connected", func() bool { // A slow machine may take longer than a session's patience.
		var err error
		c, err = client.Dial(context.Background(), "ostro://"+address, o)
		return err == nil
	})
	f.t.Cleanup(func() { _ = c.Close() })
	for {
		first := c.Get(context.Background(), 0, nil)
		for over := false; !over; {
			select {
			case b := <-f.batches:
				b.tryAll()
			case <-first.Done():
				over = true
			}
		}
		if _, err := first.Wait(); err == nil { // With little patience it may have been too slow.
			return c
		}
	}
}
