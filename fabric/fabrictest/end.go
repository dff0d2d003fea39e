package fabrictest

import (
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

// End is one side of a connection, for tests of a provider's own.
type End struct{ e *end }

// Pair connects two devices, with a region each.
func Pair(t testing.TB, devs []fabric.Device) (a, b End) {
	t.Helper()
	x, y := newEnd(t, devs[0], fabric.QPConfig{}), newEnd(t, devs[1], fabric.QPConfig{})
	connect(t, x.qp, y.qp)
	return End{x}, End{y}
}

// Memory is the end's registered memory.
func (e End) Memory() *fabric.Memory { return e.e.mem }

// QP is the end's queue pair.
func (e End) QP() fabric.QP { return e.e.qp }

// At is a place in the end's region, for its peer.
func (e End) At(off uint64) fabric.Target { return e.e.at(off) }

// Piece is a part of the end's region, for itself.
func (e End) Piece(off uint64, n uint32) fabric.Piece { return e.e.piece(off, n) }

// Do posts a request and waits for its completion.
func (e End) Do(w fabric.WR) fabric.Completion {
	e.e.t.Helper()
	return e.e.do(w)
}

// Next waits for a completion of a request.
func (e End) Next() fabric.Completion {
	e.e.t.Helper()
	return next(e.e.t, e.e.sendCQ)
}
