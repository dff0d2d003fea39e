package client

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/wire"
)

// Value is one of the results of MultiGet.
type Value struct {
	Result
	Err error // ErrNotFound, or why it could not be read
}

// Entry is one of the records of MultiPut.
type Entry struct {
	Key, Value []byte
	ExpireAt   time.Time // zero: never
}

// MultiGet reads many records; results stand in the order of keys. They are read one by one:
// no moment need have seen them all.
func (c *Client) MultiGet(ctx context.Context, table int, keys [][]byte) ([]Value, error) {
	return c.GoMultiGet(ctx, table, keys).Wait()
}

// GoMultiGet begins a MultiGet. Like Go, it waits only while MaxInFlight others are under way.
func (c *Client) GoMultiGet(ctx context.Context, table int, keys [][]byte) *Pending[[]Value] {
	g := &group{values: make([]Value, len(keys))}
	for _, k := range keys {
		g.add(c.placeOf(table, k), wire.AppendKey(nil, k))
	}
	return c.together(ctx, wire.OpMultiGet, table, g)
}

// MultiPut writes many records. Those of one server are written together: all or none, and
// nobody sees some of them. Where keys lie on several servers, each server's part is
// a write of its own; keys with the same {tag} always lie together.
func (c *Client) MultiPut(ctx context.Context, table int, entries ...Entry) error {
	_, err := c.GoMultiPut(ctx, table, entries...).Wait()
	return err
}

// GoMultiPut begins a MultiPut, as GoMultiGet does. Of its outcome only the error tells something.
func (c *Client) GoMultiPut(ctx context.Context, table int, entries ...Entry) *Pending[[]Value] {
	g := &group{}
	for _, e := range entries {
		p := wire.Put{Key: e.Key, Value: e.Value}
		if !e.ExpireAt.IsZero() {
			p.ExpireAt = e.ExpireAt.UnixMilli()
		}
		g.add(c.placeOf(table, e.Key), wire.AppendPut(nil, &p))
	}
	return c.together(ctx, wire.OpMultiPut, table, g)
}

// group is an operation on several keys.
type group struct {
	places []record.Place
	args   [][]byte // each key's part of the argument
	values []Value  // of a multi-get

	mu      sync.Mutex
	left    int // pieces that are under way
	err     error
	outcome *Pending[[]Value]
}

// piece is the part of a group that one call carries: the keys with these numbers.
type piece struct {
	g    *group
	keys []int
}

func (g *group) add(place record.Place, arg []byte) {
	g.places = append(g.places, place)
	g.args = append(g.args, arg)
}

// together sends the group in few pieces, which are split where owners differ.
func (c *Client) together(ctx context.Context, code wire.Code, table int, g *group) *Pending[[]Value] {
	g.outcome = &Pending[[]Value]{ctx: ctx}
	if err := checkTable(tableOf(table)); err != nil || len(g.places) == 0 {
		g.outcome.complete(g.values, err)
		return g.outcome
	}
	pieces := g.pieces(code)
	g.left = len(pieces)
	c.stats.operations.Add(1)
	for _, p := range pieces {
		cl := c.pieceCall(code, table, p, time.Now())
		if err := c.submit(ctx, cl, true); err != nil {
			cl.end(nil, err)
		}
	}
	return g.outcome
}

// readTogether is how many keys one piece of a multi-get has: between two of them a server has time for others.
const readTogether = 1024

// pieces are what is sent at first: all keys together, unless they are many and only read.
func (g *group) pieces(code wire.Code) (pieces []*piece) {
	all := make([]int, len(g.places))
	for i := range all {
		all[i] = i
	}
	if code != wire.OpMultiGet {
		return []*piece{{g, all}}
	}
	for keys := range slices.Chunk(all, readTogether) {
		pieces = append(pieces, &piece{g, keys})
	}
	return pieces
}

func (c *Client) pieceCall(code wire.Code, table int, p *piece, began time.Time) *call {
	cl := &call{op: wire.Op{Code: code, Table: uint32(table)}, piece: p, place: p.g.places[p.keys[0]], began: began}
	cl.w = c.workerOf(cl.place)
	for _, i := range p.keys {
		cl.op.Arg = append(cl.op.Arg, p.g.args[i]...)
	}
	cl.finish = p.finish
	return cl
}

// resplit sees that all keys of a call have one owner; true if it was cut into calls that do.
func (c *Client) resplit(r *routes, cl *call) (bool, error) {
	p := cl.piece
	parts := map[int][]int{}
	for _, i := range p.keys {
		owner := r.Owner(p.g.places[i])
		parts[owner] = append(parts[owner], i)
	}
	if len(parts) == 1 && cl.bytes() <= wire.MaxFrameBytes-1024 {
		if !cl.once() {
			cl.identify()
		}
		return false, nil
	}
	switch {
	case len(parts) == 1:
		return false, fmt.Errorf("%w: the records of one server have at most %d bytes together", ErrTooLarge, wire.MaxFrameBytes-1024)
	case cl.lost && cl.op.Writes():
		return false, fmt.Errorf("%w, and its keys have different owners now", ErrUnknownOutcome)
	}
	if cl.once() {
		cl.w.acks.done(cl.op.Sequence)
	}
	p.g.mu.Lock()
	p.g.left += len(parts) - 1
	p.g.mu.Unlock()
	for _, keys := range parts {
		part := c.pieceCall(cl.op.Code, int(cl.op.Table), &piece{p.g, keys}, cl.began)
		// There are no more of them than who waits for groups asks for. One that waited for room
		// would hold up all others that are to be tried again, also at servers that have some.
		part.admitted = true
		c.later(part, 0)
	}
	return true, nil
}

// finish takes the outcome of a piece.
func (p *piece) finish(r *wire.Result, err error) {
	if err == nil && p.g.values != nil {
		err = p.fill(r.Value)
	}
	p.g.mu.Lock()
	if err != nil && p.g.err == nil {
		p.g.err = err
	}
	p.g.left--
	left := p.g.left
	p.g.mu.Unlock()
	if left == 0 {
		p.g.outcome.complete(p.g.values, p.g.err)
	}
}

// fill puts a multi-get's values in their places. Pieces have different ones.
func (p *piece) fill(values []byte) error {
	values = bytes.Clone(values)
	for _, i := range p.keys {
		v, rest, err := wire.NextValue(values)
		if err != nil {
			return fmt.Errorf("read the answer of a multi-get: %w", err)
		}
		values = rest
		p.g.values[i].Err = errorOf(&wire.Result{Status: v.Status, Value: v.Value})
		if v.Status == wire.OK {
			p.g.values[i].Result = Result{Value: v.Value, Version: v.Version, Expires: v.ExpireAt}
		}
	}
	return nil
}
