package replica

import (
	"errors"

	"github.com/ostrodb/ostro/fabric"
)

// oneSided writes straight into the backup's buffer, whose program takes no part.
//
// The ring holds what is in flight: the byte at offset n of the segment lies at n
// modulo its size.
type oneSided struct {
	qp     fabric.QP
	target fabric.RegionInfo
	ring   stagingRing
	link   *link
	wr     [1]fabric.WR // here, so that posting allocates nothing
}

func (o *oneSided) room(flying uint32) uint32 { return ringBytes - flying }

func (o *oneSided) send(s *stream, off uint32, b []byte) bool {
	at := off % ringBytes
	n := copy(o.ring.bytes[at:], b)
	copy(o.ring.bytes, b[n:])
	w := &o.wr[0]
	*w = fabric.WR{Op: fabric.OpWrite, Flags: fabric.Signaled, Pieces: 1, Remote: o.target.At(uint64(off))}
	w.ID = uint64(s.number)<<32 | uint64(off) + uint64(len(b))
	w.Local[0] = o.ring.region.Piece(o.ring.base+uint64(at), uint32(n))
	if n < len(b) {
		w.Local[1] = o.ring.region.Piece(o.ring.base, uint32(len(b)-n))
		w.Pieces = 2
	}
	err := o.qp.Post(o.wr[:]...)
	switch {
	case err == nil:
		return true
	case errors.Is(err, fabric.ErrFull):
		o.link.starved.Store(true)
	default:
		o.link.fail(err)
	}
	return false
}

// release gives the ring back. While the NIC may still read it, it is kept until the
// link is closed.
func (o *oneSided) release(flying bool) {
	if flying {
		o.link.keep(o.ring)
	} else {
		o.link.staging.give(o.ring)
	}
}
