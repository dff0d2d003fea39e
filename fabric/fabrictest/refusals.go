package fabrictest

import (
	"bytes"
	"math"
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

// refusal is a request that must be refused, and the counter that shows it.
type refusal struct {
	name  string
	make  func(a, b *end) fabric.WR
	want  fabric.Status
	count func(fabric.Metrics) uint64
}

func (s Suite) refusals(t *testing.T) {
	key := func(m fabric.Metrics) uint64 { return m.RefusedKey }
	bounds := func(m fabric.Metrics) uint64 { return m.RefusedBounds }
	right := func(m fabric.Metrics) uint64 { return m.RefusedRight }
	request := func(m fabric.Metrics) uint64 { return m.RefusedRequest }
	for _, r := range []refusal{
		{"a WRITE with a forged key", func(a, b *end) fabric.WR {
			return fabric.Write(fabric.Target{Key: b.at(0).Key ^ 1<<63}, a.piece(0, 8))
		}, fabric.RemoteAccess, key},
		{"a READ with the key 0", func(a, _ *end) fabric.WR {
			return fabric.Read(fabric.Target{}, a.piece(0, 8))
		}, fabric.RemoteAccess, key},
		{"a WRITE with a key beyond all", func(a, _ *end) fabric.WR {
			return fabric.Write(fabric.Target{Key: math.MaxUint64}, a.piece(0, 8))
		}, fabric.RemoteAccess, key},
		{"a WRITE with a key of another domain", func(a, b *end) fabric.WR {
			other := must(b.dev.NewDomain("other"))(b.t)
			reg := must(other.Register(b.mem, fabric.Everything))(b.t)
			return fabric.Write(reg.Info().At(0), a.piece(0, 8))
		}, fabric.RemoteAccess, key},
		{"a WRITE past the end", func(a, b *end) fabric.WR {
			return fabric.Write(b.at(regionBytes-4), a.piece(0, 8))
		}, fabric.RemoteAccess, bounds},
		{"a WRITE whose end wraps around", func(a, b *end) fabric.WR {
			return fabric.Write(fabric.Target{Key: b.at(0).Key, Addr: math.MaxUint64 - 3}, a.piece(0, 8))
		}, fabric.RemoteAccess, bounds},
		{"a READ past the end", func(a, b *end) fabric.WR {
			return fabric.Read(b.at(regionBytes), a.piece(0, 1))
		}, fabric.RemoteAccess, bounds},
		{"a CAS past the end", func(a, b *end) fabric.WR { return fabric.CAS(b.at(regionBytes), 0, 1, a.piece(0, 8)) }, fabric.RemoteAccess, bounds},
		{"a FLUSH past the end", func(_, b *end) fabric.WR { return fabric.Flush(b.at(0), regionBytes+1, 0) }, fabric.RemoteAccess, bounds},
		{"a WRITE without the right", func(a, b *end) fabric.WR {
			return fabric.Write(b.restricted(fabric.RemoteRead|fabric.RemoteAtomic), a.piece(0, 8))
		}, fabric.RemoteAccess, right},
		{"a READ without the right", func(a, b *end) fabric.WR {
			return fabric.Read(b.restricted(fabric.RemoteWrite), a.piece(0, 8))
		}, fabric.RemoteAccess, right},
		{"a CAS without the right", func(a, b *end) fabric.WR {
			return fabric.CAS(b.restricted(fabric.RemoteWrite|fabric.RemoteRead), 0, 1, a.piece(0, 8))
		}, fabric.RemoteAccess, right},
		{"a misaligned CAS", func(a, b *end) fabric.WR { return fabric.CAS(b.at(4), 0, 1, a.piece(0, 8)) }, fabric.RemoteInvalid, request},
	} {
		s.test(t, r.name, func(t *testing.T, a, b *end) { s.refused(t, a, b, b, r) })
	}
	local := func(m fabric.Metrics) uint64 { return m.RefusedLocal }
	for _, r := range []refusal{
		{"a WRITE from outside of the local region", func(a, b *end) fabric.WR {
			return fabric.Write(b.at(0), a.piece(regionBytes-7, 8))
		}, fabric.LocalAccess, local},
		{"a WRITE with a forged local key", func(_, b *end) fabric.WR {
			return fabric.Write(b.at(0), fabric.Piece{Key: math.MaxUint32, Bytes: 8})
		}, fabric.LocalAccess, local},
		{"a READ into a region that may not be written", func(a, b *end) fabric.WR {
			reg := must(a.dom.Register(a.mem, fabric.RemoteRead))(a.t)
			return fabric.Read(b.at(0), reg.Piece(0, 8))
		}, fabric.LocalAccess, local},
		{"an unknown operation", func(a, b *end) fabric.WR {
			return fabric.WR{Op: 200}
		}, fabric.BadRequest, request},
		{"a RECV in the send queue", func(a, b *end) fabric.WR { return fabric.Recv(0, a.piece(0, 8)) }, fabric.BadRequest, request},
		{"too many pieces", func(a, b *end) fabric.WR {
			w := fabric.Write(b.at(0), a.piece(0, 8))
			w.Pieces = fabric.MaxPieces + 1
			return w
		}, fabric.BadRequest, request},
	} {
		s.test(t, r.name, func(t *testing.T, a, b *end) { s.refused(t, a, b, a, r) })
	}
	s.test(t, "a revoked key", func(t *testing.T, a, b *end) {
		a.ok(fabric.Write(b.at(0), a.piece(0, 8)))
		check(t, b.reg.Revoke())
		s.refused(t, a, b, b, refusal{"", func(a, b *end) fabric.WR {
			return fabric.Write(b.at(0), a.piece(0, 8))
		}, fabric.RemoteAccess, key})
	})
	s.test(t, "a refused request disturbs no other connection", func(t *testing.T, a, b *end) {
		p, q := a.newQP(fabric.QPConfig{}), b.newQP(fabric.QPConfig{})
		connect(t, p, q)
		wantStatus(t, a.do(fabric.Write(b.at(regionBytes), a.piece(0, 1))), fabric.RemoteAccess)
		a.mem.Bytes()[3] = 33
		check(t, p.Post(fabric.Write(b.at(3), a.piece(3, 1)).Signal(1)))
		wantStatus(t, next(t, a.sendCQ), fabric.OK)
		if b.mem.Bytes()[3] != 33 {
			t.Fatal("the byte is missing")
		}
	})
}

// restricted registers b's memory once more with fewer rights.
func (e *end) restricted(access fabric.Access) fabric.Target {
	e.t.Helper()
	return must(e.dom.Register(e.mem, access))(e.t).Info().At(0)
}

// refused posts good, bad, good: the first succeeds, the second ends as it
// must, the third is flushed, both ends fail, and nothing of the bad one landed.
func (s Suite) refused(t *testing.T, a, b, counts *end, r refusal) {
	a.fill(0x55)
	w := r.make(a, b)
	image := bytes.Clone(b.mem.Bytes())
	before := must(counts.dev.Metrics())(t)
	check(t, a.qp.Post(fabric.Nop().Signal(1), w.Signal(2), fabric.Write(b.at(0), a.piece(0, 8))))
	wantStatus(t, next(t, a.sendCQ), fabric.OK)
	wantStatus(t, next(t, a.sendCQ), r.want)
	wantStatus(t, next(t, a.sendCQ), fabric.Flushed)
	if !bytes.Equal(image, b.mem.Bytes()) {
		t.Fatal("bytes landed")
	}
	if a.qp.State() != fabric.Failed {
		t.Fatalf("the initiator is %v", a.qp.State())
	}
	eventually(t, "the target fails", func() bool { return b.qp.State() == fabric.Failed })
	after := must(counts.dev.Metrics())(t)
	if counts.dev.Caps().Counts && (r.count(after) != r.count(before)+1 || after.Refused() != before.Refused()+1) {
		t.Fatalf("refusals were counted wrongly: %+v, then %+v", before, after)
	}
	check(t, a.qp.Post(fabric.Nop()))
	wantStatus(t, next(t, a.sendCQ), fabric.Flushed)
}
