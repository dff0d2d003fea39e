// Package client speaks Ostro's native protocol to one server or to a cluster.
//
//	Go, Call, Do ── call ── worker ── session to the key's owner ── batches ──▶ server
//	                 ▲                    │ stale, moved, closed
//	                 └── tried again ◀────┘ with a newer map
//
// Operations are asynchronous: they are batched while batches are under way and sent at once
// otherwise, and complete in any order. Operations that are in flight together may be executed in
// any order; who needs one before the other waits for its outcome.
//
// Every write has an identity, so it is executed once, however often it had to be sent.
package client

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/wire"
)

// Client is a connection to a server or a cluster. It is for concurrent use.
type Client struct {
	opts       Options
	seeds      []string
	workers    []*worker
	routes     atomic.Pointer[routes]
	firstTable atomic.Uint32 // see wire.Welcome
	lease      atomic.Int64  // how long servers remember results, milliseconds
	stats      stats

	mu      sync.Mutex
	waiting []*call         // to be tried again
	asking  map[string]bool // servers that are being asked for their map
	closed  bool
	ctx     context.Context // ends with the client
	cancel  context.CancelFunc
	nudge   chan struct{} // the list of waiting calls is not empty any more
	ask     chan struct{} // a newer map is wanted
	running sync.WaitGroup
}

// Stats is what a client knows of itself.
type Stats struct {
	Operations int64
	Batches    int64
	Retries    int64 // operations that were tried again
	Stale      int64 // batches that were rejected for their view
	Sessions   int64 // that were opened
	Refreshes  int64 // newer maps
}

type stats struct{ operations, batches, retries, stale, sessions, refreshes atomic.Int64 }

// Stats takes stock.
func (c *Client) Stats() Stats {
	s := &c.stats
	return Stats{s.operations.Load(), s.batches.Load(), s.retries.Load(), s.stale.Load(), s.sessions.Load(), s.refreshes.Load()}
}

// Dial connects to one of the servers in url, ostro://[:password@]host:port,host:port, and
// learns from it about all others. ostros:// speaks TLS.
func Dial(ctx context.Context, url string, o Options) (*Client, error) {
	seeds, err := parseURL(url, &o)
	if err != nil {
		return nil, err
	}
	c := &Client{
		opts: o.withDefaults(), seeds: seeds,
		asking: map[string]bool{}, nudge: make(chan struct{}, 1), ask: make(chan struct{}, 1),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.lease.Store(int64(3 * time.Minute / time.Millisecond))
	for range c.opts.Workers {
		c.workers = append(c.workers, &worker{c: c, id: rand.Uint64(), sessions: map[string]*session{}})
	}
	if err := c.firstMap(ctx); err != nil {
		c.cancel()
		return nil, err
	}
	c.running.Go(c.retrier)
	c.running.Go(c.refresher)
	c.running.Go(c.watch)
	return c, nil
}

// Close ends all sessions. What is in flight fails with ErrClosed.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	waiting := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	c.cancel()
	for _, w := range c.workers {
		w.close()
	}
	for _, call := range waiting {
		call.end(nil, ErrClosed)
	}
	c.running.Wait()
	return nil
}

// Go begins an operation. It waits only while MaxInFlight others are under way.
func (c *Client) Go(ctx context.Context, op Op) *Future {
	f := &Future{ctx: ctx}
	c.begin(ctx, &op.op, received(f), true)
	return f
}

// Call begins an operation and calls back with its outcome, from the goroutine that receives
// results: the callback must not wait. Call itself never waits: with MaxInFlight others under way
// it calls back with ErrBusy. The value is valid during the callback.
func (c *Client) Call(ctx context.Context, op Op, done func(Result, error)) {
	c.begin(ctx, &op.op, func(r *wire.Result, err error) {
		if r == nil {
			done(Result{}, err)
			return
		}
		done(Result{Value: r.Value, Version: r.Version, Expires: r.ExpireAt}, err)
	}, false)
}

// Do executes an operation and waits for its outcome.
func (c *Client) Do(ctx context.Context, op Op) (Result, error) {
	s := syncs.Get().(*syncCall)
	c.begin(ctx, &op.op, s.finish, true)
	return s.wait(ctx)
}

// begin makes a call of an operation and sends it on its way.
func (c *Client) begin(ctx context.Context, op *wire.Op, finish func(*wire.Result, error), wait bool) {
	if err := check(op); err != nil {
		finish(nil, err)
		return
	}
	cl := c.newCall(op, finish)
	if err := c.submit(ctx, cl, wait); err != nil {
		cl.end(nil, err)
	}
}

func check(op *wire.Op) error {
	switch {
	case len(op.Key) > record.MaxKeyBytes:
		return fmt.Errorf("%w: a key has at most %d bytes", ErrTooLarge, record.MaxKeyBytes)
	case wire.OpBytes(op) > wire.MaxFrameBytes-1024:
		return fmt.Errorf("%w: an operation has at most %d bytes", ErrTooLarge, wire.MaxFrameBytes-1024)
	}
	return checkTable(op.Table)
}

// placeOf is where a key lives: a tenant's tables are others than they are called.
func (c *Client) placeOf(table int, key []byte) record.Place {
	return record.PlaceOf(record.TableID(c.firstTable.Load())+record.TableID(table), key)
}

// newCall copies the operation, gives it a worker and, if it writes, an identity.
func (c *Client) newCall(op *wire.Op, finish func(*wire.Result, error)) *call {
	place := c.placeOf(int(op.Table), op.Key)
	cl := &call{op: *op, place: place, finish: finish, began: time.Now(), w: c.workerOf(place)}
	room := make([]byte, 0, len(op.Key)+len(op.Arg))
	room = append(append(room, op.Key...), op.Arg...)
	cl.op.Key, cl.op.Arg = room[:len(op.Key):len(op.Key)], room[len(op.Key):]
	cl.identify()
	c.stats.operations.Add(1)
	return cl
}

// identify gives a write a number that all its attempts share.
func (cl *call) identify() {
	if cl.op.Writes() && !cl.w.c.opts.Unrecorded {
		cl.op.Flags |= wire.FlagOnce
		cl.op.Sequence = cl.w.acks.next()
	}
}

// workerOf spreads places over workers; a place always has the same one.
func (c *Client) workerOf(p record.Place) *worker {
	return c.workers[uint64(p)%uint64(len(c.workers))]
}

// Get begins to read a record.
func (c *Client) Get(ctx context.Context, table int, key []byte) *Future {
	return c.Go(ctx, Get(table, key))
}

// Put begins to write a record.
func (c *Client) Put(ctx context.Context, table int, key, value []byte) *Future {
	return c.Go(ctx, Put(table, key, value))
}

// Add begins to add to a counter.
func (c *Client) Add(ctx context.Context, table int, key []byte, delta int64) *Future {
	return c.Go(ctx, Add(table, key, delta))
}

// Delete begins to remove a record.
func (c *Client) Delete(ctx context.Context, table int, key []byte) *Future {
	return c.Go(ctx, Delete(table, key))
}

// Ping asks the server of a key whether it is there.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.Do(ctx, opOf(wire.OpPing, 0, nil, nil))
	return err
}

// syncCall is what Do waits with; they are used again and again.
type syncCall struct {
	over   chan struct{}
	result Result
	err    error
	finish func(*wire.Result, error)
}

var syncs = sync.Pool{New: func() any {
	s := &syncCall{over: make(chan struct{}, 1)}
	s.finish = s.completed
	return s
}}

func (s *syncCall) completed(r *wire.Result, err error) {
	s.result, s.err = Result{}, err
	if r != nil {
		s.result = Result{Value: bytes.Clone(r.Value), Version: r.Version, Expires: r.ExpireAt}
	}
	s.over <- struct{}{}
}

func (s *syncCall) wait(ctx context.Context) (Result, error) {
	select {
	case <-s.over:
		r, err := s.result, s.err
		s.result = Result{}
		syncs.Put(s)
		return r, err
	case <-ctx.Done():
		return Result{}, ctx.Err() // The call still has s, which is not used again.
	}
}
