package fabrictest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

func (s Suite) flush(t *testing.T) {
	s.test(t, "FLUSH completes in its turn", func(t *testing.T, a, b *end) {
		a.mem.Bytes()[0] = 1
		check(t, a.qp.Post(fabric.Write(b.at(0), a.piece(0, 1)), fabric.Flush(b.at(0), 1, 0).Signal(1), fabric.Nop().Signal(2)))
		for want := uint64(1); want <= 2; want++ {
			if c := next(t, a.sendCQ); c.ID != want || c.Status != fabric.OK || b.mem.Bytes()[0] != 1 {
				t.Fatalf("got %+v", c)
			}
		}
	})
	s.test(t, "a file-backed region takes writes, and FLUSH brings them to its medium", testFile)
	s.test(t, "a file cut under its region fails the request and nothing else", testCutFile)
}

// mapped registers a part of a new file with e.
func (e *end) mapped(t *testing.T) (string, *os.File, fabric.RegionInfo) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "region")
	f := must(os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600))(t)
	t.Cleanup(func() { _ = f.Close() })
	check(t, f.Truncate(64<<10))
	m := must(fabric.MapFile(f, 4096, 32<<10))(t)
	t.Cleanup(func() { _ = m.Close() })
	return path, f, must(e.dom.Register(m, fabric.Everything))(t).Info()
}

func testFile(t *testing.T, a, b *end) {
	if !a.dev.Caps().Persist {
		t.Skip("not promised by this provider")
	}
	path, _, info := b.mapped(t)
	copy(a.mem.Bytes(), "durable")
	for off := uint64(0); off < 32<<10; off += 5000 {
		check(t, a.qp.Post(
			fabric.Write(info.At(off), a.piece(0, 7)),
			fabric.Flush(info.At(off), 7, fabric.Persist).Signal(off),
			fabric.Add(info.At(8), 1, a.piece(100, 8)).Signal(off+1)))
		for want := off; want <= off+1; want++ {
			if c := next(t, a.sendCQ); c.ID != want || c.Status != fabric.OK {
				t.Fatalf("got %+v, want request %d", c, want)
			}
		}
		if got := must(os.ReadFile(path))(t); string(got[4096+off:][:7]) != "durable" {
			t.Fatalf("the file has %q at %d", got[4096+off:][:7], off)
		}
	}
}

// testCutRead reads from a file that is cut meanwhile: no byte may be made up.
func testCutRead(t *testing.T, a, b *end) {
	_, f, info := b.mapped(t)
	p, q := a.newQP(fabric.QPConfig{}), b.newQP(fabric.QPConfig{})
	connect(t, p, q)
	check(t, f.Truncate(4096))
	check(t, p.Post(fabric.Read(info.At(0), a.piece(0, 32<<10)).Signal(1)))
	if c := next(t, a.sendCQ); c.Status != fabric.RemoteFault && c.Status != fabric.PeerLost {
		t.Fatalf("a READ of memory that failed: %v", c.Status)
	}
}

func testCutFile(t *testing.T, a, b *end) {
	if !b.dev.Caps().Counts {
		t.Skip("not promised by this provider")
	}
	_, f, info := b.mapped(t)
	p, q := a.newQP(fabric.QPConfig{}), b.newQP(fabric.QPConfig{})
	connect(t, p, q)
	check(t, f.Truncate(4096))
	wantStatus(t, a.do(fabric.Write(info.At(100), a.piece(0, 8))), fabric.RemoteFault)
	m := must(b.dev.Metrics())(t)
	if m.Faults != 1 {
		t.Fatalf("%d faults were counted", m.Faults)
	}
	testCutRead(t, a, b)
	a.mem.Bytes()[0] = 3
	check(t, p.Post(fabric.Write(b.at(0), a.piece(0, 1)).Signal(1)))
	wantStatus(t, next(t, a.sendCQ), fabric.OK)
	if b.mem.Bytes()[0] != 3 {
		t.Fatal("another region suffered")
	}
}
