package group

import (
	"context"
	"fmt"
	"math"
)

type kind uint8

const (
	gWrite kind = 1 + iota
	gCAS
	gCopy
	gFlush
)

// operation is one on all replicas.
type operation struct {
	kind     kind
	durable  bool
	execute  Map
	off      uint64 // of a copy, the destination
	src      uint64
	n        uint64
	old, new uint64
	data     []byte
}

// Flag changes an operation.
type Flag uint8

// Durable interleaves a gFLUSH of what the operation changes: each replica has it
// on its medium before the next one hears of the operation.
const Durable Flag = 1

func durable(flags []Flag) bool {
	var all Flag
	for _, f := range flags {
		all |= f
	}
	return all&Durable != 0
}

// Write is gWRITE: data goes to offset off of every replica. The caller may use
// data again at once. It waits only while the window is full.
func (g *Group) Write(ctx context.Context, off uint64, data []byte, flags ...Flag) (*Pending, error) {
	n := uint64(len(data))
	if err := g.inside("gWRITE", off, n); err != nil {
		return nil, err
	}
	if n > uint64(g.spec.MaxWrite) {
		return nil, fmt.Errorf("%w: gWRITE of %d bytes; this group takes up to %d at once", ErrRefused, n, g.spec.MaxWrite)
	}
	return g.issue(ctx, &operation{kind: gWrite, durable: durable(flags), off: off, n: n, data: data})
}

// CAS is gCAS: on each replica of the map, if the 8 bytes at off are old, they
// become new; the result has what was there.
func (g *Group) CAS(ctx context.Context, off, old, new uint64, execute Map, flags ...Flag) (*Pending, error) {
	if err := g.inside("gCAS", off, 8); err != nil {
		return nil, err
	}
	if off%8 != 0 {
		return nil, fmt.Errorf("%w: gCAS at %d, which is no multiple of 8", ErrRefused, off)
	}
	if execute&^First(g.spec.Replicas) != 0 {
		return nil, fmt.Errorf("%w: gCAS on replicas %07b of a group of %d", ErrRefused, execute, g.spec.Replicas)
	}
	return g.issue(ctx, &operation{
		kind: gCAS, durable: durable(flags), execute: execute, off: off, n: 8, old: old, new: new,
	})
}

// Undo takes back a gCAS that succeeded on some replicas only: those get the old
// value again, the others are left alone.
func (g *Group) Undo(ctx context.Context, off, old, new uint64, r Result, flags ...Flag) (*Pending, error) {
	return g.CAS(ctx, off, new, old, r.Swapped(old), flags...)
}

// Copy is gMEMCPY: every replica copies n of its own bytes from src to dst. The
// two may not overlap.
func (g *Group) Copy(ctx context.Context, dst, src, n uint64, flags ...Flag) (*Pending, error) {
	if err := g.inside("gMEMCPY from", src, n); err != nil {
		return nil, err
	}
	if err := g.inside("gMEMCPY to", dst, n); err != nil {
		return nil, err
	}
	if dst < src+n && src < dst+n {
		return nil, fmt.Errorf("%w: gMEMCPY of %d bytes from %d to %d, which overlap", ErrRefused, n, src, dst)
	}
	return g.issue(ctx, &operation{kind: gCopy, durable: durable(flags), off: dst, src: src, n: n})
}

// Flush is gFLUSH: all that was written before to n bytes at off is on every
// replica's medium.
func (g *Group) Flush(ctx context.Context, off, n uint64) (*Pending, error) {
	if err := g.inside("gFLUSH", off, n); err != nil {
		return nil, err
	}
	return g.issue(ctx, &operation{kind: gFlush, durable: true, off: off, n: n})
}

// inside refuses what is empty or lies outside of the replicas' memory.
func (g *Group) inside(what string, off, n uint64) error {
	if n == 0 || n > math.MaxUint32 || off > g.bytes || n > g.bytes-off {
		return fmt.Errorf("%w: %s %d bytes at %d of %d", ErrRefused, what, n, off, g.bytes)
	}
	return nil
}
