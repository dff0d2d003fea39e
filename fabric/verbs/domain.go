//go:build verbs

package verbs

// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/ostrodb/ostro/fabric"
)

// domain is a protection domain of the hardware.
type domain struct {
	device  *Device
	pd      *C.struct_ibv_pd
	flush   *C.struct_ibv_mr   // of the device's scratch memory
	regions map[uint32]*region // by local key
	cqs     map[*CQ]struct{}
	closed  bool
}

// NewDomain opens a protection domain.
func (d *Device) NewDomain(string) (fabric.Domain, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fabric.ErrClosed
	}
	dom := &domain{device: d, regions: map[uint32]*region{}, cqs: map[*CQ]struct{}{}}
	if dom.pd = C.ibv_alloc_pd(d.context); dom.pd == nil {
		return nil, fmt.Errorf("verbs: no room for a protection domain")
	}
	var err error
	if dom.flush, err = dom.register(d.scratch, C.IBV_ACCESS_LOCAL_WRITE); err != nil {
		C.ibv_dealloc_pd(dom.pd)
		return nil, err
	}
	d.domains[dom] = struct{}{}
	return dom, nil
}

func (dom *domain) register(m *fabric.Memory, access C.int) (*C.struct_ibv_mr, error) {
	mr, err := C.register_memory(dom.pd, unsafe.Pointer(&m.Bytes()[0]), C.size_t(len(m.Bytes())), access)
	if mr == nil {
		return nil, fmt.Errorf("verbs: register %d bytes: %w", len(m.Bytes()), err)
	}
	return mr, nil
}

// enter takes the device's lock for something done in the domain.
func (dom *domain) enter() (leave func(), err error) {
	dom.device.mu.Lock()
	if dom.closed || dom.device.closed {
		dom.device.mu.Unlock()
		return nil, fabric.ErrClosed
	}
	return dom.device.mu.Unlock, nil
}

func (dom *domain) Close() error {
	leave, err := dom.enter()
	if err != nil {
		return err
	}
	defer leave()
	dom.close()
	return nil
}

// close closes everything in the domain. The caller has the lock.
func (dom *domain) close() {
	for _, q := range dom.device.qps {
		if q.domain == dom {
			q.retire()
		}
	}
	for c := range dom.cqs {
		c.close()
	}
	for _, r := range dom.regions {
		_ = r.revoke()
	}
	C.ibv_dereg_mr(dom.flush)
	C.ibv_dealloc_pd(dom.pd)
	dom.closed = true
	delete(dom.device.domains, dom)
}

// region is memory that the hardware has pinned.
type region struct {
	domain *domain
	mr     *C.struct_ibv_mr
	info   fabric.RegionInfo
	local  uint32
	access fabric.Access
}

// allows tells whether a request may use a piece. The hardware checks, too, but
// takes requests down with the bad one that were posted before it.
func (dom *domain) allows(p fabric.Piece, need fabric.Access) bool {
	r := dom.regions[p.Key]
	if p.Bytes == 0 {
		return true
	}
	if r == nil || r.access&need != need || p.Addr < r.info.Base {
		return false
	}
	off := p.Addr - r.info.Base
	return off <= r.info.Bytes && uint64(p.Bytes) <= r.info.Bytes-off
}

func (dom *domain) Register(m *fabric.Memory, access fabric.Access) (fabric.Region, error) {
	leave, err := dom.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	mr, err := dom.register(m, rights(access))
	if err != nil {
		return nil, err
	}
	base := uint64(uintptr(unsafe.Pointer(&m.Bytes()[0])))
	r := &region{domain: dom, mr: mr, local: uint32(mr.lkey), access: access, info: fabric.RegionInfo{
		Key: uint64(mr.rkey), Base: base, Bytes: uint64(len(m.Bytes())),
	}}
	dom.regions[r.local] = r
	return r, nil
}

// rights translates access. The hardware wants local writing for remote writing.
func rights(a fabric.Access) C.int {
	out := C.int(0)
	for right, bit := range map[fabric.Access]C.int{
		fabric.LocalWrite: C.IBV_ACCESS_LOCAL_WRITE, fabric.RemoteRead: C.IBV_ACCESS_REMOTE_READ,
		fabric.RemoteWrite:  C.IBV_ACCESS_REMOTE_WRITE | C.IBV_ACCESS_LOCAL_WRITE,
		fabric.RemoteAtomic: C.IBV_ACCESS_REMOTE_ATOMIC | C.IBV_ACCESS_LOCAL_WRITE,
	} {
		if a&right != 0 {
			out |= bit
		}
	}
	return out
}

func (dom *domain) RegisterRing(fabric.QP, fabric.Access) (fabric.Region, error) {
	return nil, fabric.ErrUnsupported
}

func (r *region) Info() fabric.RegionInfo { return r.info }

func (r *region) Piece(off uint64, n uint32) fabric.Piece {
	return fabric.Piece{Addr: r.info.Base + off, Bytes: n, Key: r.local}
}

func (r *region) Revoke() error {
	leave, err := r.domain.enter()
	if err != nil {
		return err
	}
	defer leave()
	if r.mr == nil {
		return fabric.ErrClosed
	}
	return r.revoke()
}

// revoke takes the key back. The hardware returns when nothing uses it any more.
func (r *region) revoke() error {
	code := C.ibv_dereg_mr(r.mr)
	r.mr = nil
	delete(r.domain.regions, r.local)
	return failed("revoke a region", code)
}
