package nic

import (
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/ring"
	"github.com/ostrodb/ostro/internal/await"
)

func TestMain(m *testing.M) { os.Exit(await.RunToEnd(m)) }

// program is a session that uses the engine without a driver, and so can write
// anything into the memory it shares.
type program struct {
	t       *testing.T
	session *Session
	bells   *ring.Doorbells
	event   int
	domain  uint32
	region  Response
	data    *fabric.Memory
	cq      uint32
	cqMem   *fabric.Memory
}

func newProgram(t *testing.T, e *Engine, name string) *program {
	t.Helper()
	s, err := e.Attach(name)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, session: s}
	mem, event := s.Doorbells()
	p.bells, p.event = ring.NewDoorbells(mem.Bytes()), event
	out, _ := p.call(Request{Verb: NewDomain})
	p.domain = out.Number
	if p.data, err = fabric.NewMemory(64 << 10); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.data.Close() })
	p.region, _, err = s.Call(Request{Verb: Register, Domain: p.domain, Bytes: 64 << 10, Access: fabric.Everything}, p.data.File())
	if err != nil {
		t.Fatal(err)
	}
	out, p.cqMem = p.call(Request{Verb: NewCQ, Domain: p.domain, Depth: 16})
	p.cq = out.Number
	return p
}

func (p *program) call(r Request) (Response, *fabric.Memory) {
	p.t.Helper()
	out, mem, err := p.session.Call(r, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return out, mem
}

const depth = 16

// loop makes a queue pair connected to itself, and gives its memory.
func (p *program) loop() (Response, []byte) {
	p.t.Helper()
	out, mem := p.call(Request{Verb: NewQP, Domain: p.domain, SendCQ: p.cq, RecvCQ: p.cq, SendDepth: depth, RecvDepth: depth})
	p.call(Request{Verb: Connect, Domain: p.domain, QP: out.Number, Endpoint: out.Endpoint})
	return out, mem.Bytes()
}

func (p *program) ring(bell uint32) {
	if p.bells.Ring(bell) {
		ring.Signal(p.event)
	}
}

func startEngine(t *testing.T) *Engine {
	t.Helper()
	e, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// sane tells that the engine still serves a program.
func sane(t *testing.T, p *program) {
	t.Helper()
	q, mem := p.loop()
	pair := ring.NewPair(mem, depth, depth)
	cq := ring.NewCompletions(p.cqMem.Bytes(), 16)
	before := cq.Produced()
	w := fabric.Add(fabric.Target{Key: p.region.Key}, 1).Signal(7)
	pair.Send.Put(0, &w)
	pair.Send.Publish(1)
	p.ring(q.Bell)
	for cq.Produced() == before {
		cq.SleepAt(before)
	}
	var one [1]fabric.Completion
	if cq.Take(one[:]); one[0].Status != fabric.OK || one[0].ID != 7 {
		t.Fatalf("a bystander's request ended with %+v", one[0])
	}
	p.call(Request{Verb: CloseQP, Domain: p.domain, QP: q.Number})
}

func TestGarbageInAProgramsOwnQueuesHarmsNobodyElse(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	e := startEngine(t)
	bystander, fool := newProgram(t, e, "bystander"), newProgram(t, e, "fool")
	for range 300 {
		q, mem := fool.loop()
		// All of it: counters, states, slots.
		for i := 0; i < len(mem); i += 8 {
			if rng.IntN(3) > 0 {
				garble(mem[i:i+8], rng)
			}
		}
		pair := ring.NewPair(mem, depth, depth)
		for i := range uint64(depth) {
			w := guess(rng, fool)
			pair.Send.Put(i, &w)
		}
		if rng.IntN(2) == 0 {
			pair.Send.Publish(uint64(rng.IntN(depth + 1)))
			pair.Recv.Publish(uint64(rng.IntN(depth + 1)))
		}
		fool.ring(q.Bell)
		fool.ring(uint32(rng.IntN(ring.Bells)))
		garble(fool.cqMem.Bytes()[:512], rng)
		sane(t, bystander)
		fool.call(Request{Verb: CloseQP, Domain: fool.domain, QP: q.Number})
	}
}

func garble(b []byte, rng *rand.Rand) {
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
}

// guess is a request that is often nearly right.
func guess(rng *rand.Rand, p *program) fabric.WR {
	w := fabric.WR{
		Op: fabric.Op(rng.IntN(12)), Flags: fabric.Flags(rng.IntN(8)), Pieces: uint8(rng.IntN(6)), CQ: uint32(rng.IntN(4)),
		A: rng.Uint64N(4), B: rng.Uint64(), Remote: fabric.Target{Key: p.region.Key, Addr: rng.Uint64N(70 << 10)}, Unowned: rng.IntN(8) == 0,
	}
	if rng.IntN(4) == 0 {
		w.Remote = fabric.Target{Key: rng.Uint64(), Addr: rng.Uint64()}
	}
	for i := range w.Local {
		w.Local[i] = fabric.Piece{Key: p.region.Local, Addr: rng.Uint64N(70 << 10), Bytes: uint32(rng.IntN(4096))}
		if rng.IntN(10) == 0 {
			w.Local[i] = fabric.Piece{Key: rng.Uint32(), Addr: rng.Uint64(), Bytes: rng.Uint32()}
		}
	}
	return w
}

func TestASessionThatEndsLeavesNothingBehind(t *testing.T) {
	e := startEngine(t)
	keep := newProgram(t, e, "keep")
	for range 20 {
		p := newProgram(t, e, "brief")
		p.loop()
		if err := p.session.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.session.Call(Request{Verb: NewDomain}, nil); err == nil {
			t.Fatal("a session that ended made a domain")
		}
	}
	var regions, qps, cqs int
	_ = e.do(func() {
		regions, qps, cqs = count(e.regions), count(e.qps), count(e.cqs)
		if len(e.regions) > 4 || len(e.qps) > 4 || len(e.cqs) > 4 {
			t.Errorf("places are not used again: %d, %d, %d", len(e.regions), len(e.qps), len(e.cqs))
		}
	})
	if regions != 1 || qps != 0 || cqs != 1 {
		t.Fatalf("%d regions, %d queue pairs, %d completion queues are left", regions, qps, cqs)
	}
	sane(t, keep)
}

func count[T any](list []*T) (n int) {
	for _, x := range list {
		if x != nil {
			n++
		}
	}
	return n
}

func TestKeysAreNeverTheSameAgain(t *testing.T) {
	e := startEngine(t)
	p := newProgram(t, e, "p")
	seen := map[uint64]bool{p.region.Key: true}
	for range 1000 {
		r, _, err := p.session.Call(Request{Verb: Register, Domain: p.domain, Bytes: 4096}, p.data.File())
		if err != nil {
			t.Fatal(err)
		}
		if seen[r.Key] || r.Key>>placeBits == 0 {
			t.Fatalf("key %x", r.Key)
		}
		seen[r.Key] = true
		p.call(Request{Verb: Revoke, Key: r.Key})
	}
}

func TestAnEngineAllocatesNothingPerRequest(t *testing.T) {
	e := startEngine(t)
	p := newProgram(t, e, "p")
	q, mem := p.loop()
	pair := ring.NewPair(mem, depth, depth)
	posted := uint64(0)
	at, piece := fabric.Target{Key: p.region.Key, Addr: 128}, fabric.Piece{Key: p.region.Local, Bytes: 100}
	kinds := []fabric.WR{
		fabric.Write(at, piece).Signal(1), fabric.Read(at, piece), fabric.Send(piece, piece), fabric.Wait(p.cq, 1),
		fabric.CAS(at, 0, 1, piece), fabric.Add(at, 1), fabric.Flush(at, 8, 0), fabric.WriteImm(at, 1, piece), fabric.Nop(),
	}
	recv := fabric.Recv(1, piece, piece, piece)
	cq := ring.NewCompletions(p.cqMem.Bytes(), 16)
	received := uint64(0)
	var taken [16]fabric.Completion
	post := func() {
		w := &kinds[posted%uint64(len(kinds))]
		if w.Op == fabric.OpSend || w.Op == fabric.OpWriteImm {
			pair.Recv.Put(received, &recv)
			received++
			pair.Recv.Publish(received)
		}
		pair.Send.Put(posted, w)
		posted++
		pair.Send.Publish(posted)
		p.ring(q.Bell)
		for pair.Send.Head() != posted {
			runtime.Gosched()
		}
		cq.Take(taken[:])
	}
	var before, after runtime.MemStats
	post()
	runtime.ReadMemStats(&before)
	const requests = 5000
	for range requests {
		post()
	}
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; n > requests/10 {
		t.Fatalf("%d allocations for %d requests", n, requests)
	}
}
