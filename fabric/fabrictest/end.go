package fabrictest

import (
	"fmt"
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

// Single makes one side, to be connected by the test.
func Single(t testing.TB, d fabric.Device) End { return End{newEnd(t, d, fabric.QPConfig{})} }

// Alone is Single for a process that is no test: what fails there panics.
func Alone(d fabric.Device) End { return Single(&loner{}, d) }

// loner stands in for a test where there is none.
type loner struct{ testing.TB }

func (*loner) Helper()           {}
func (*loner) Cleanup(func())    {}
func (*loner) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Memory is the end's registered memory.
func (e End) Memory() *fabric.Memory { return e.e.mem }

// QP is the end's queue pair.
func (e End) QP() fabric.QP { return e.e.qp }

// At is a place in the end's region, for its peer.
func (e End) At(off uint64) fabric.Target { return e.e.at(off) }

// Piece is a part of the end's region, for itself.
func (e End) Piece(off uint64, n uint32) fabric.Piece { return e.e.piece(off, n) }

// Region is the end's region, as its peer sees it.
func (e End) Region() fabric.RegionInfo { return e.e.reg.Info() }

// CQ is where the end's requests complete.
func (e End) CQ() fabric.CQ { return e.e.sendCQ }

// Arrived is the number of the queue that counts the end's RECVs.
func (e End) Arrived() uint32 { return e.e.recvCQ.Number() }

// Received waits for a RECV to complete.
func (e End) Received() fabric.Completion {
	e.e.t.Helper()
	return next(e.e.t, e.e.recvCQ)
}

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
