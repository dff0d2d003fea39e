package fabrictest

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/ostrodb/ostro/fabric"
)

// word is an aligned word of a region, as another thread sees it.
func (e *end) word(off int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&e.mem.Bytes()[off]))
}

func (s Suite) order(t *testing.T) {
	s.test(t, "requests take effect in posting order", s.testPostingOrder)
	s.test(t, "completions come in posting order", func(t *testing.T, a, b *end) {
		for i := uint64(0); i < 100; i += 4 {
			check(t, a.qp.Post(
				fabric.Write(b.at(0), a.piece(0, 100_000)).Signal(i), fabric.Read(b.at(0), a.piece(0, 10)).Signal(i+1),
				fabric.Add(b.at(0), 1, a.piece(8, 8)).Signal(i+2), fabric.Nop().Signal(i+3)))
			for want := i; want < i+4; want++ {
				if c := next(t, a.sendCQ); c.ID != want || c.Status != fabric.OK {
					t.Fatalf("got %+v, want request %d", c, want)
				}
			}
		}
	})
	s.test(t, "a fenced request sees what those before it brought", func(t *testing.T, a, b *end) {
		binary.LittleEndian.PutUint64(b.mem.Bytes(), 77)
		for range 50 {
			clear(a.mem.Bytes()[:8])
			check(t, a.qp.Post(fabric.Read(b.at(0), a.piece(0, 8)), fabric.Write(b.at(8), a.piece(0, 8)).Fence().Signal(1)))
			wantStatus(t, next(t, a.sendCQ), fabric.OK)
			if got := b.word(8).Load(); got != 77 {
				t.Fatalf("the WRITE took %d from a piece that a READ before it fills", got)
			}
		}
	})
	s.test(t, "the last byte lands last", s.testLastByteLast)
	s.test(t, "a watcher sees bytes land in increasing order", s.testWatchOrder)
}

// testPostingOrder writes one word over and over: it must never step back.
func (s Suite) testPostingOrder(t *testing.T, a, b *end) {
	total := uint64(s.Rounds * 20)
	stop := make(chan struct{})
	back := make(chan [2]uint64, 1)
	go func() {
		defer close(back)
		for high := uint64(0); ; {
			now := b.word(0).Load()
			if now < high {
				back <- [2]uint64{high, now}
				return
			}
			high = now
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	const window = 64
	for i := uint64(1); i <= total; i++ {
		slot := i % window * 8
		a.word(int(slot)).Store(i)
		w := fabric.Write(b.at(0), a.piece(slot, 8))
		if i%(window/2) == 0 {
			w = w.Signal(i)
		}
		check(t, a.qp.Post(w))
		if i%(window/2) == 0 {
			wantStatus(t, next(t, a.sendCQ), fabric.OK)
		}
	}
	close(stop)
	if seen, bad := <-back; bad {
		t.Fatalf("after %d the target showed %d", seen[0], seen[1])
	}
}

func (s Suite) testLastByteLast(t *testing.T, a, b *end) {
	s.watch(t, a, b, 0)
}

func (s Suite) testWatchOrder(t *testing.T, a, b *end) {
	if !a.dev.Caps().WatchOrder {
		t.Skip("not promised by this provider")
	}
	s.watch(t, a, b, 40)
}

// watch writes generations over a stretch of words while another thread looks
// at it: the last word may never be newer than an earlier one, and with samples,
// no sampled word newer than one before it.
func (s Suite) watch(t *testing.T, a, b *end, samples int) {
	const n = 300 << 10
	stop, bad := make(chan struct{}), make(chan [2]int, 1)
	go func() {
		defer close(bad)
		for {
			select {
			case <-stop:
				return
			default:
			}
			high := b.word(n - 8).Load()
			for i := samples; i >= 0; i-- {
				off := n / (samples + 2) * (i + 1) &^ 7
				low := b.word(off).Load()
				if low < high {
					bad <- [2]int{off, int(high - low)}
					return
				}
				high = low
			}
		}
	}()
	for g := uint64(1); g <= uint64(s.Rounds/4+10); g++ {
		for off := 0; off < n; off += 8 {
			a.word(off).Store(g)
		}
		a.ok(fabric.Write(b.at(0), a.piece(0, n)))
	}
	close(stop)
	if where, found := <-bad; found {
		t.Fatalf("the word at %d was %d generations behind one after it", where[0], where[1])
	}
}
