package nic

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/ostrodb/ostro/fabric"
)

// A remote key is 20 bits of place and 44 random ones; a local key 20 bits of
// place and 12 of generation. The place makes looking it up one load; the rest
// makes a remote key unguessable, and a stale local one wrong.
const (
	placeBits = 20
	placeMask = 1<<placeBits - 1
)

// domain is a tenant's: keys of one are unknown in all others.
type domain struct {
	id      uint32
	tenant  string
	session *Session
}

// region is registered memory, by a mapping of the engine's own.
type region struct {
	dom        *domain
	base       unsafe.Pointer
	bytes      uint64
	key        uint64
	local      uint32
	access     fabric.Access
	broken     bool // its memory failed once
	mem        *fabric.Memory
	medium     bool // that outlasts the machine's power
	persisting int  // helpers that sync it
	revoked    bool // unmapped when the last helper is done
}

func (r *region) fits(addr, n uint64) bool { return addr <= r.bytes && n <= r.bytes-addr }

// remote finds what a peer of target asks for. A refusal is counted by the
// device whose memory it is.
func (e *Engine) remote(target *qp, at fabric.Target, n uint64, need fabric.Access) (unsafe.Pointer, fabric.Status) {
	m := &target.session.metrics
	place := at.Key & placeMask
	if place >= uint64(len(e.regions)) {
		m.RefusedKey++
		return nil, fabric.RemoteAccess
	}
	switch r := e.regions[place]; {
	case r == nil || r.key != at.Key || r.dom != target.dom:
		m.RefusedKey++
		return nil, fabric.RemoteAccess
	case r.access&need != need:
		m.RefusedRight++
		return nil, fabric.RemoteAccess
	case !r.fits(at.Addr, n):
		m.RefusedBounds++
		return nil, fabric.RemoteAccess
	case r.broken:
		return nil, fabric.RemoteFault
	default:
		return unsafe.Add(r.base, at.Addr), fabric.OK
	}
}

// piece finds local memory of a request of q.
func (e *Engine) piece(q *qp, p fabric.Piece, need fabric.Access) (unsafe.Pointer, bool) {
	place := p.Key & placeMask
	if place >= uint32(len(e.regions)) {
		return nil, false
	}
	r := e.regions[place]
	if r == nil || r.local != p.Key || r.dom != q.dom || r.access&need != need || r.broken || !r.fits(p.Addr, uint64(p.Bytes)) {
		return nil, false
	}
	return unsafe.Add(r.base, p.Addr), true
}

// install gives a region its place and keys. It runs in the loop.
func (e *Engine) install(r *region) error {
	var place uint32
	if n := len(e.freed); n > 0 {
		place, e.freed = e.freed[n-1], e.freed[:n-1]
	} else if place = uint32(len(e.regions)); place > placeMask {
		return fmt.Errorf("nic: %d regions are registered; revoke some", placeMask)
	} else {
		e.regions = append(e.regions, nil)
	}
	var random [10]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fmt.Errorf("nic: %w", err)
	}
	r.key = binary.LittleEndian.Uint64(random[:])&^placeMask | uint64(place)
	r.local = uint32(binary.LittleEndian.Uint16(random[8:]))<<placeBits | place
	e.regions[place] = r
	return nil
}

// remove takes the keys back. What is left to do, unmapping, needs no loop, and
// is the caller's unless a helper still syncs the memory.
func (e *Engine) remove(r *region) (unmap bool) {
	place := uint32(r.key & placeMask)
	e.regions[place] = nil
	e.freed = append(e.freed, place)
	r.revoked = true
	return r.persisting == 0
}

// blame finds the region an address belongs to and takes it out of use.
func (e *Engine) blame(addr uintptr) *region {
	for _, r := range e.regions {
		if r != nil && addr-uintptr(r.base) < uintptr(r.bytes) {
			r.broken = true
			return r
		}
	}
	return nil
}
