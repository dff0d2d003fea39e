package group

import (
	"context"
	"fmt"
	"sync"

	"github.com/ostrodb/ostro/fabric"
)

// Read copies bytes of one replica's memory, from offset off on, into buf. It is
// one-sided: the replica's program takes no part. It sees every operation that
// had ended before the call; of those in flight it may see any part.
func (g *Group) Read(ctx context.Context, replica int, off uint64, buf []byte) error {
	if replica < 0 || replica >= g.spec.Replicas {
		return fmt.Errorf("%w: read of replica %d of %d", ErrRefused, replica, g.spec.Replicas)
	}
	if n := uint64(len(buf)); n == 0 || off > g.bytes || n > g.bytes-off {
		return fmt.Errorf("%w: read %d bytes at %d of %d", ErrRefused, n, off, g.bytes)
	}
	r := reader{g: g, replica: replica, off: off, rest: buf}
	defer r.abandon()
	for len(r.rest) > 0 || len(r.flying) > 0 {
		if err := r.advance(ctx); err != nil {
			return err
		}
	}
	return nil
}

// reader is one call of Read.
type reader struct {
	g       *Group
	replica int
	off     uint64
	rest    []byte  // not asked for yet
	flying  []chunk // asked for, oldest first
}

type chunk struct {
	slot int
	into []byte
}

// advance asks for one more chunk if there is a slot, and else waits: for its own
// oldest, or for a slot that another reader has.
func (r *reader) advance(ctx context.Context) error {
	free := r.g.client.reads.free
	if len(r.rest) > 0 {
		select {
		case slot := <-free:
			return r.ask(slot)
		default:
		}
	}
	if len(r.flying) > 0 {
		return r.receive(ctx)
	}
	select {
	case slot := <-free:
		return r.ask(slot)
	case <-ctx.Done():
		return ctx.Err()
	case <-r.g.broken:
		return r.g.Err()
	}
}

func (r *reader) ask(slot int) error {
	c := r.g.client
	into := r.rest[:min(readBytes, len(r.rest))]
	c.reads.begin(slot)
	piece := c.reads.reg.Piece(uint64(slot*readBytes), uint32(len(into)))
	err := c.post(c.watches[r.replica], fabric.Read(c.offers[r.replica].Data.At(r.off), piece).Signal(uint64(slot)))
	if err != nil {
		c.reads.free <- slot
		if own := r.g.Err(); own != nil {
			return own
		}
		return fmt.Errorf("%w: read replica %d: %w", ErrBroken, r.replica, err)
	}
	r.flying = append(r.flying, chunk{slot, into})
	r.off, r.rest = r.off+uint64(len(into)), r.rest[len(into):]
	return nil
}

// receive waits for the oldest chunk and copies it.
func (r *reader) receive(ctx context.Context) error {
	oldest := r.flying[0]
	reads := r.g.client.reads
	if err := r.g.await(ctx, reads.arrival(oldest.slot)); err != nil {
		return err
	}
	if !reads.copy(oldest) {
		return r.g.Err()
	}
	r.flying = r.flying[1:]
	return nil
}

// abandon leaves what is still in flight.
func (r *reader) abandon() {
	for _, c := range r.flying {
		r.g.client.reads.leave(c.slot)
	}
}

// reads are the slots of registered memory that reads of replicas land in.
//
// Invariant: a slot is free, or a request for it is in flight, or its bytes are
// there for its reader to copy. Who leaves a request in flight leaves the slot
// to its completion.
type reads struct {
	mem  *fabric.Memory
	reg  fabric.Region
	free chan int

	mu     sync.RWMutex
	slots  [readSlots]readSlot
	closed bool
}

type readSlot struct {
	arrived chan struct{} // closed when the bytes are there, or never will be
	there   bool
	left    bool
}

const (
	readSlots = 8
	readBytes = 64 << 10
)

func newReads(dom fabric.Domain) (*reads, error) {
	mem, err := fabric.NewMemory(readSlots * readBytes)
	if err != nil {
		return nil, err
	}
	r := &reads{mem: mem, free: make(chan int, readSlots)}
	for i := range readSlots {
		r.free <- i
	}
	r.reg, err = dom.Register(mem, fabric.LocalWrite)
	return r, err
}

func (r *reads) begin(slot int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots[slot] = readSlot{arrived: make(chan struct{})}
	if r.closed {
		close(r.slots[slot].arrived)
	}
}

func (r *reads) arrival(slot int) <-chan struct{} {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.slots[slot].arrived
}

// end is told of a request's completion.
func (r *reads) end(slot int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slot < 0 || slot >= readSlots || r.slots[slot].arrived == nil || r.slots[slot].there {
		return fmt.Errorf("a read ended that nobody began: %d", slot)
	}
	if s := &r.slots[slot]; s.left {
		s.arrived = nil
		r.free <- slot
	} else if !r.closed {
		s.there = true
		close(s.arrived)
	}
	return nil
}

// copy gives a chunk to its reader, unless it has not come, for the group broke, or the memory is gone.
func (r *reads) copy(c chunk) bool {
	r.mu.RLock()
	ok := !r.closed && r.slots[c.slot].there
	if ok {
		copy(c.into, r.mem.Bytes()[c.slot*readBytes:])
	}
	r.mu.RUnlock()
	if ok {
		r.leave(c.slot)
	}
	return ok
}

// leave is the reader's last word about a slot.
func (r *reads) leave(slot int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := &r.slots[slot]; !s.there {
		s.left = true
	} else {
		s.arrived, s.there = nil, false
		r.free <- slot
	}
}

// close ends all reads in flight. The NIC must have been fenced.
func (r *reads) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for i := range r.slots {
		if s := &r.slots[i]; s.arrived != nil && !s.there {
			close(s.arrived)
			s.there = true
		}
	}
	return r.mem.Close()
}
