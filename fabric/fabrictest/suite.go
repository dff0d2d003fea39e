// Package fabrictest is the suite that every provider of the fabric passes: what
// package fabric promises, as tests.
package fabrictest

import (
	"context"
	"testing"
	"time"

	"github.com/ostrodb/ostro/fabric"
)

// Suite is a provider under test.
type Suite struct {
	// Open opens devices with these names that can reach each other. They are closed
	// when the test ends.
	Open func(t testing.TB, names ...string) []fabric.Device
	// Rounds sizes the tests that race things; 0 is a default.
	Rounds int
}

// Run runs the whole suite.
func (s Suite) Run(t *testing.T) {
	if s.Rounds == 0 {
		s.Rounds = 200
	}
	t.Run("operations", s.operations)
	t.Run("messages", s.messages)
	t.Run("order", s.order)
	t.Run("refusals", s.refusals)
	t.Run("fences", s.fences)
	t.Run("atomics", s.atomics)
	t.Run("flush", s.flush)
	t.Run("queues", s.queues)
	t.Run("waits", s.waits)
	t.Run("hand-over", s.handOver)
	t.Run("rounds", s.rounds)
	t.Run("chain", s.chain)
	t.Run("model", s.model)
}

// test runs one test on a fresh pair of connected ends.
func (s Suite) test(t *testing.T, name string, f func(t *testing.T, a, b *end)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		a, b := s.pair(t)
		f(t, a, b)
	})
}

const regionBytes = 1 << 20

// end is one side of a connection, with a region of its own.
type end struct {
	t      testing.TB
	dev    fabric.Device
	dom    fabric.Domain
	mem    *fabric.Memory
	reg    fabric.Region
	sendCQ fabric.CQ
	recvCQ fabric.CQ
	qp     fabric.QP
}

func (s Suite) pair(t testing.TB) (a, b *end) {
	t.Helper()
	devs := s.Open(t, "a", "b")
	a, b = newEnd(t, devs[0], fabric.QPConfig{}), newEnd(t, devs[1], fabric.QPConfig{})
	connect(t, a.qp, b.qp)
	return a, b
}

func newEnd(t testing.TB, d fabric.Device, c fabric.QPConfig) *end {
	t.Helper()
	e := &end{t: t, dev: d}
	e.dom = must(d.NewDomain("tenant"))(t)
	e.mem = newMemory(t, regionBytes)
	e.reg = must(e.dom.Register(e.mem, fabric.Everything))(t)
	e.sendCQ, e.recvCQ = must(e.dom.NewCQ(256))(t), must(e.dom.NewCQ(256))(t)
	e.qp = e.newQP(c)
	return e
}

func (e *end) newQP(c fabric.QPConfig) fabric.QP {
	e.t.Helper()
	c.SendCQ, c.RecvCQ = e.sendCQ, e.recvCQ
	return must(e.dom.NewQP(c))(e.t)
}

func newMemory(t testing.TB, bytes int) *fabric.Memory {
	t.Helper()
	m := must(fabric.NewMemory(bytes))(t)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// connect joins two queue pairs and waits until they are.
func connect(t testing.TB, a, b fabric.QP) {
	t.Helper()
	check(t, a.Connect(b.Endpoint()))
	if a != b {
		check(t, b.Connect(a.Endpoint()))
	}
	ready(t, a)
	ready(t, b)
}

func ready(t testing.TB, q fabric.QP) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	check(t, q.Ready(ctx))
}

// patience is how long a test waits for what must happen.
const patience = 3 * time.Minute

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		check(t, err)
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// next waits for one completion.
func next(t testing.TB, cq fabric.CQ) fabric.Completion {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var one [1]fabric.Completion
	for cq.Poll(one[:]) == 0 {
		check(t, cq.Wait(ctx))
	}
	return one[0]
}

// do posts a request and waits for its completion.
func (e *end) do(w fabric.WR) fabric.Completion {
	e.t.Helper()
	check(e.t, e.qp.Post(w.Signal(w.ID)))
	return next(e.t, e.sendCQ)
}

// ok is do for what must succeed.
func (e *end) ok(w fabric.WR) {
	e.t.Helper()
	if c := e.do(w); c.Status != fabric.OK {
		e.t.Fatalf("%v: %v", w.Op, c.Status)
	}
}

func (e *end) at(off uint64) fabric.Target { return e.reg.Info().At(off) }

func (e *end) piece(off uint64, n uint32) fabric.Piece { return e.reg.Piece(off, n) }

// fill gives the region bytes that tell where they are from.
func (e *end) fill(seed byte) {
	for i := range e.mem.Bytes() {
		e.mem.Bytes()[i] = byte(i*7+i>>9) ^ seed
	}
}

func wantStatus(t testing.TB, got fabric.Completion, want fabric.Status) {
	t.Helper()
	if got.Status != want {
		t.Fatalf("request %d (%v) ended with %q, want %q", got.ID, got.Op, got.Status, want)
	}
}

// eventually waits for a condition that other threads bring about.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		pause()
	}
}
