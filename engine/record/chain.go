package record

import (
	"encoding/binary"
	"hash/crc32"
	"sync/atomic"
	"unsafe"
)

const (
	// SealBytes is the length of a seal.
	SealBytes = 24

	frontBytes  = 8
	sealBatch   = 8    // Where a seal's batch stands.
	sealSumAt   = 16   // And its sum, which covers all before.
	sealClosed  = 0x01 // Flag: the segment's last seal.
	sealEndMark = 0xA5
)

// Chain is the running CRC-32C over the headers of a segment, in their order,
// seeded with the segment's id. Seals are not part of it: it says what came
// before a seal, not how that was cut into batches.
//
// A Chain is a value: a copy of it is a point to go back to.
type Chain struct{ sum uint32 }

// NewChain returns the chain of a segment without entries.
func NewChain(id SegmentID) Chain {
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(id))
	return Chain{crc32.Checksum(seed[:], castagnoli)}
}

// Sum returns the CRC so far.
func (c *Chain) Sum() uint32 { return c.sum }

// Add appends the entry at p, of any type but a seal. Its header must be final:
// CRC in place, version unlocked.
func (c *Chain) Add(p Ptr) {
	n := HeaderBytes
	if p.Length() < HeaderBytes {
		n = frontBytes // A short void has no more.
	}
	c.sum = crc32.Update(c.sum, castagnoli, unsafe.Slice((*byte)(p.p), n))
}

// AddAll appends the entries that lie one after the other from p on, n bytes of them, as Add does one.
func (c *Chain) AddAll(p Ptr, n int) {
	if chainsFast {
		c.sum = chainHeaders(c.sum, p.p, n)
		return
	}
	c.addEach(p, n)
}

func (c *Chain) addEach(p Ptr, n int) {
	for done := 0; done < n; {
		e := Ptr{unsafe.Add(p.p, done)}
		c.Add(e)
		done += e.Length()
	}
}

// PutSeal writes a seal of all entries so far, as batch n of the log, to dst,
// SealBytes long and 8-aligned. The word with the end mark is stored last and
// atomically, so who sees the mark in this memory sees all that was written
// before it, even if this process dies between two stores.
func (c *Chain) PutSeal(dst []byte, n BatchID, closed bool) {
	_ = dst[SealBytes-1]
	p := PtrOf(dst)
	p.setFront(sealFront(closed))
	*(*uint64)(unsafe.Add(p.p, sealBatch)) = uint64(n)
	tail := uint64(c.sealSum(dst)) | sealEndMark<<56
	atomic.StoreUint64((*uint64)(unsafe.Add(p.p, sealSumAt)), tail)
}

// TouchSeal stores zeroes where a seal will stand and zeroes are: a mapped page
// that has to be made writable is, before PutSeal.
func TouchSeal(dst []byte) {
	_ = dst[SealBytes-1]
	p := PtrOf(dst)
	atomic.StoreUint64((*uint64)(p.p), 0)
	atomic.StoreUint64((*uint64)(unsafe.Add(p.p, sealSumAt)), 0)
}

// sealSum returns the CRC that a seal must hold. It covers the seal's own front
// and batch, so that no flip opens or closes a segment, or moves a batch in the
// log's order; and it is never zero, so that a sum is told from bytes that did
// not arrive.
func (c *Chain) sealSum(seal []byte) uint32 {
	sum := crc32.Update(c.sum, castagnoli, seal[:sealSumAt])
	if sum == 0 {
		return 1
	}
	return sum
}

func sealFront(closed bool) uint64 {
	front := uint64(TypeSeal) | SealBytes<<32
	if closed {
		front |= sealClosed << 8
	}
	return front
}
