package peer

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/internal/background"
)

// readBytes is how much one system call reads of small frames.
const readBytes = 64 << 10

// caller is a connection that passed the greeting.
type caller struct {
	server *Server
	from   view.NodeID
	ear    *ear
	in     *bufio.Reader // of the ear
	out    *sender
	room   chan struct{}        // bounds the handlers that run
	work   background.Diligence // of quiet calls
	prompt bool                 // its goroutine is prompt, or nicer than others
	behind bool                 // answers in order wait for others to leave with them
	soon   patience             // of calls that are answered in order

	mu    sync.Mutex
	calls map[uint64]context.CancelFunc
}

// serve takes requests until the connection ends, and returns when all their
// handlers have.
func (s *Server) serve(c net.Conn, from view.NodeID) error {
	ear := newEar(c)
	k := &caller{
		server: s, from: from, ear: ear, in: bufio.NewReaderSize(ear, readBytes), out: newSender(c, answerTimeout),
		room: make(chan struct{}, maxCalls), calls: map[uint64]context.CancelFunc{},
	}
	ctx, cancel := context.WithCancel(s.ctx)
	err := k.run(ctx)
	k.soon.drop()
	cancel()
	_ = c.Close() // Handlers that send to it go on.
	k.out.dropHeld()
	k.out.beside.Wait()
	for range maxCalls {
		k.room <- struct{}{}
	}
	return err
}

func (k *caller) run(ctx context.Context) error {
	var scratch []byte // memory of the next frame, unless a handler has it
	for {
		if k.behind && !k.atHand() {
			if err := k.catchUp(); err != nil {
				return err
			}
		}
		var f frame
		memory, err := f.readBy(k.in, scratch, k.lend)
		if err != nil {
			return err
		}
		scratch = memory
		switch f.kind {
		case kindCancel:
			k.cancel(f.call)
			continue
		case kindRequest:
			k.server.calls.Add(1)
		default:
			return fmt.Errorf("%w: a caller sent an answer", ErrMalformed)
		}
		m, ok := k.server.method(f.method)
		if !ok {
			m = method{handler: unknown}
		}
		k.ear.awake = k.ear.awake || m.promptly
		k.become(m)
		if m.inOrder {
			err = k.answerInOrder(ctx, m, &f)
		} else if err = k.catchUp(); err == nil {
			k.begin(ctx, m, &f, memory)
			scratch = nil
		}
		if err != nil {
			return err
		}
	}
}

// become gives the goroutine a thread of the kind that a method asks for. Who is quiet stays so.
func (k *caller) become(m method) {
	switch {
	case m.quiet:
		k.prompt = true
		k.work.Piece()
	case m.promptly && !k.prompt:
		k.prompt = true
		background.Prompt()
	}
}

// largeBulk is what makes a request so long that it is sent slowly: a copy of a segment, say, for which no client waits.
const largeBulk = 1 << 20

// lend reads the rest of a large request into memory that was lent before, if there is some.
func (k *caller) lend(s sizes, into []byte, read func([]byte)) {
	if s.bulk >= largeBulk {
		if b, _ := k.server.lent.Get().(*[]byte); b != nil {
			into = *b
		}
	}
	read(into)
}

// begin answers a request in a goroutine of its own, when there is room for one.
func (k *caller) begin(ctx context.Context, m method, f *frame, memory []byte) {
	k.room <- struct{}{}
	ctx, cancel := context.WithCancel(ctx)
	k.note(f.call, cancel)
	go func() {
		_ = k.out.send(k.result(ctx, m, f)) // The reader finds out what was wrong.
		if m.lent && len(memory) >= largeBulk {
			k.server.lent.Put(&memory)
		}
		k.forget(f.call)
		cancel()
		<-k.room
	}()
}

func unknown(_ context.Context, c *Call) (any, []byte, error) {
	return nil, nil, fmt.Errorf("%w: %q", ErrUnknownMethod, c.Method)
}

// answerInOrder calls a handler here and now. Its answer leaves with those of the
// requests that are at hand already.
func (k *caller) answerInOrder(ctx context.Context, m method, f *frame) error {
	ctx = k.soon.within(ctx, f.millis)
	f.millis = 0
	a := k.result(ctx, m, f)
	k.behind = true
	return k.out.queue(a)
}

// atHand tells whether a whole request is. The first half of one is not enough: nobody knows when the other will come, and
// answers that wait for it hold what they lie in.
func (k *caller) atHand() bool {
	n := k.in.Buffered()
	if n < headerBytes {
		return false
	}
	b, err := k.in.Peek(headerBytes)
	if err != nil {
		return false
	}
	var f frame
	s, err := f.decodeHeader((*[headerBytes]byte)(b))
	return err == nil && n >= headerBytes+s.method+s.head+s.bulk
}

// catchUp sends the answers that wait for others.
func (k *caller) catchUp() error {
	if !k.behind {
		return nil
	}
	k.behind = false
	return k.out.flush()
}

// setAside is catchUp for who must not wait for the caller.
func (k *caller) setAside() error {
	if !k.behind {
		return nil
	}
	k.behind = false
	return k.out.setAside()
}

// patience is the time that calls in a row have. Most have about the same: those share one context, for a timer of each
// would cost more than what it is for.
type patience struct {
	ctx  context.Context
	end  time.Time
	stop context.CancelFunc
}

// within is a context that ends after about so many milliseconds, a tenth of them early or late at the most. 0 is no limit.
func (p *patience) within(ctx context.Context, millis uint32) context.Context {
	if millis == 0 {
		return ctx
	}
	long := time.Duration(millis) * time.Millisecond
	end := time.Now().Add(long)
	if p.ctx != nil && p.ctx.Err() == nil && end.Sub(p.end).Abs() < long/10 {
		return p.ctx
	}
	p.drop()
	p.end = end
	p.ctx, p.stop = context.WithDeadline(ctx, end)
	return p.ctx
}

func (p *patience) drop() {
	if p.stop != nil {
		p.stop()
	}
}

// result is a handler's answer as a frame.
func (k *caller) result(ctx context.Context, m method, f *frame) *frame {
	if f.millis > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(f.millis)*time.Millisecond)
		defer cancel()
	}
	c := &Call{From: k.from, Method: f.method, Head: f.head, Bulk: f.bulk, by: k}
	c.send = func(head any, bulk []byte) error { return k.part(f.call, head, bulk) }
	if m.inOrder {
		c.after = k
	}
	head, bulk, err := m.handler(ctx, c)
	a := &frame{kind: kindAnswer, call: f.call, bulk: bulk, pieces: c.pieces, sent: c.sent}
	if err == nil {
		a.head, err = encodeHead(head)
	}
	if err == nil {
		err = a.check()
	}
	if err == nil {
		return a
	}
	a.release()
	k.server.failed.Add(1)
	said, _ := encodeHead(errorOf(err)) // Two strings always can be.
	return &frame{kind: kindError, call: f.call, head: said}
}

func (k *caller) part(call uint64, head any, bulk []byte) error {
	b, err := encodeHead(head)
	if err != nil {
		return err
	}
	f := &frame{kind: kindPart, call: call, head: b}
	if len(bulk) < wholePart {
		f.bulk = bulk
	} else {
		f.pieces = [][]byte{bulk} // From where it is: it is sent when send returns.
	}
	return k.out.send(f)
}

// wholePart is how large a part is that is not copied to be sent with others.
const wholePart = 32 << 10

func (k *caller) note(call uint64, cancel context.CancelFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls[call] = cancel
}

func (k *caller) forget(call uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.calls, call)
}

func (k *caller) cancel(call uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if cancel := k.calls[call]; cancel != nil {
		cancel()
	}
}
