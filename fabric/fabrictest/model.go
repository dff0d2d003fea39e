package fabrictest

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

// world is what two regions must look like after a list of requests of a.
type world struct {
	rng   *rand.Rand
	a, b  *end
	mine  []byte // a's region
	their []byte // b's region
	batch []fabric.WR
	recvs []fabric.WR
}

// model posts random requests and compares both memories with those of a model
// that executes them one after the other.
func (s Suite) model(t *testing.T) {
	s.test(t, "random requests do what they would do one by one", func(t *testing.T, a, b *end) {
		seed := rand.Uint64()
		defer func() {
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		}()
		w := &world{rng: rand.New(rand.NewPCG(seed, 0)), a: a, b: b}
		a.fill(1)
		b.fill(2)
		w.mine, w.their = bytes.Clone(a.mem.Bytes()), bytes.Clone(b.mem.Bytes())
		for round := range s.Rounds / 2 {
			w.run(t)
			if !bytes.Equal(w.mine, a.mem.Bytes()) {
				t.Fatalf("round %d: the initiator's memory differs at %d", round, differ(w.mine, a.mem.Bytes()))
			}
			if !bytes.Equal(w.their, b.mem.Bytes()) {
				t.Fatalf("round %d: the target's memory differs at %d", round, differ(w.their, b.mem.Bytes()))
			}
		}
	})
}

func differ(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// run posts one batch. Sources lie in the lower half of a region, destinations in
// the upper one, so that requests in flight do not depend on each other's results.
func (w *world) run(t *testing.T) {
	w.batch, w.recvs = w.batch[:0], w.recvs[:0]
	for range 1 + w.rng.IntN(20) {
		w.add()
	}
	last := len(w.batch) - 1
	w.batch[last] = w.batch[last].Signal(99)
	early := w.rng.IntN(2) == 0
	if early {
		check(t, w.b.qp.PostRecv(w.recvs...))
	}
	check(t, w.a.qp.Post(w.batch...))
	if !early {
		check(t, w.b.qp.PostRecv(w.recvs...))
	}
	if c := next(t, w.a.sendCQ); c.ID != 99 || c.Status != fabric.OK {
		t.Fatalf("got %+v", c)
	}
	for range w.recvs {
		wantStatus(t, next(t, w.b.recvCQ), fabric.OK)
	}
}

const half = regionBytes / 2

// size is small most of the time, and sometimes longer than a turn or a buffer.
func (w *world) size() uint32 {
	if w.rng.IntN(8) == 0 {
		return uint32(w.rng.IntN(100_000))
	}
	return uint32(w.rng.IntN(300))
}

// pieces chooses places in the lower or upper half of e's region, for n bytes if
// n is not negative.
func (w *world) pieces(e *end, upper bool, n int64) (list []fabric.Piece, total uint32) {
	count := 1 + w.rng.IntN(fabric.MaxPieces)
	for i := range count {
		size := w.size()
		if n >= 0 && (i == count-1 || int64(size) > n-int64(total)) {
			size = uint32(n) - total
		}
		off := uint64(w.rng.IntN(half - int(size)))
		if upper {
			off += half
		}
		list = append(list, e.piece(off, size))
		total += size
	}
	return list, total
}

// offset is where in its region a piece lies.
func (e *end) offset(p fabric.Piece) uint64 { return p.Addr - e.piece(0, 0).Addr }

func (e *end) gather(mem []byte, pieces []fabric.Piece) (out []byte) {
	for _, p := range pieces {
		at := e.offset(p)
		out = append(out, mem[at:at+uint64(p.Bytes)]...)
	}
	return out
}

func (e *end) scatter(mem []byte, pieces []fabric.Piece, data []byte) {
	for _, p := range pieces {
		at := e.offset(p)
		n := copy(mem[at:at+uint64(p.Bytes)], data)
		data = data[n:]
	}
}

// add chooses a request and executes it in the model.
func (w *world) add() {
	switch w.rng.IntN(5) {
	case 0:
		src, n := w.pieces(w.a, false, -1)
		off := uint64(half + w.rng.IntN(half-int(n)))
		w.batch = append(w.batch, fabric.Write(w.b.at(off), src...))
		copy(w.their[off:], w.a.gather(w.mine, src))
	case 1:
		dst, n := w.pieces(w.a, true, -1)
		off := uint64(w.rng.IntN(half - int(n)))
		w.batch = append(w.batch, fabric.Read(w.b.at(off), dst...))
		w.a.scatter(w.mine, dst, w.their[off:off+uint64(n)])
	case 2:
		src, n := w.pieces(w.a, false, -1)
		dst, _ := w.pieces(w.b, true, int64(n))
		w.batch = append(w.batch, fabric.Send(src...))
		w.recvs = append(w.recvs, fabric.Recv(0, dst...))
		w.b.scatter(w.their, dst, w.a.gather(w.mine, src))
	case 3:
		w.atomic()
	case 4:
		w.batch = append(w.batch, fabric.Nop())
	}
}

func (w *world) atomic() {
	word := uint64(half + 8*w.rng.IntN(half/8))
	result := w.a.piece(uint64(half+w.rng.IntN(half-8)), 8)
	old := binary.LittleEndian.Uint64(w.their[word:])
	changed := old
	switch w.rng.IntN(3) {
	case 0:
		changed = old + 12345
		w.batch = append(w.batch, fabric.Add(w.b.at(word), 12345, result))
	case 1:
		changed = w.rng.Uint64()
		w.batch = append(w.batch, fabric.CAS(w.b.at(word), old, changed, result))
	case 2:
		w.batch = append(w.batch, fabric.CAS(w.b.at(word), old+1, 0, result))
	}
	binary.LittleEndian.PutUint64(w.their[word:], changed)
	binary.LittleEndian.PutUint64(w.mine[w.a.offset(result):], old)
}
