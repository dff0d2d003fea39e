package fabrictest

import (
	"context"
	"errors"
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

func (s Suite) queues(t *testing.T) {
	t.Run("a full queue takes no part of a batch", func(t *testing.T) {
		a := newEnd(t, s.Open(t, "a")[0], fabric.QPConfig{SendDepth: 8, RecvDepth: 4})
		six := make([]fabric.WR, 6)
		for i := range six {
			six[i] = fabric.Nop().Signal(uint64(i))
		}
		check(t, a.qp.Post(six...))
		if err := a.qp.Post(six[:3]...); !errors.Is(err, fabric.ErrFull) {
			t.Fatalf("nine requests in eight slots: %v", err)
		}
		check(t, a.qp.Post(six[:2]...))
		if err := a.qp.PostRecv(make([]fabric.WR, 5)...); !errors.Is(err, fabric.ErrFull) {
			t.Fatalf("five RECVs in four slots: %v", err)
		}
		connect(t, a.qp, a.qp)
		for i := range uint64(8) {
			if c := next(t, a.sendCQ); c.ID != i%6 {
				t.Fatalf("got %+v, want %d", c, i%6)
			}
		}
		if a.qp.Posted() != 8 || a.qp.SendDepth() != 8 {
			t.Fatalf("posted %d, depth %d", a.qp.Posted(), a.qp.SendDepth())
		}
	})
	s.test(t, "queues are used round and round", func(t *testing.T, a, b *end) {
		for i := range uint64(1000) {
			check(t, b.qp.PostRecv(fabric.Recv(i, b.piece(0, 8))))
			a.word(0).Store(i)
			a.ok(fabric.Send(a.piece(0, 8)))
			if c := next(t, b.recvCQ); c.ID != i || b.word(0).Load() != i {
				t.Fatalf("round %d: %+v", i, c)
			}
		}
	})
	s.test(t, "a completion means that the slots up to its request are free", func(t *testing.T, a, b *end) {
		depth := a.qp.SendDepth()
		batch := make([]fabric.WR, depth/2)
		for i := range batch {
			batch[i] = fabric.Write(b.at(0), a.piece(0, 8))
		}
		batch[len(batch)-1] = batch[len(batch)-1].Signal(1)
		check(t, a.qp.Post(batch...))
		for range s.Rounds {
			check(t, a.qp.Post(batch...))
			wantStatus(t, next(t, a.sendCQ), fabric.OK)
		}
	})
	t.Run("a full completion queue holds requests back and loses none", s.testFullCQ)
	s.test(t, "a failed queue pair flushes what is posted, on both queues", func(t *testing.T, a, b *end) {
		wantStatus(t, a.do(fabric.WR{Op: 99}), fabric.BadRequest)
		check(t, a.qp.Post(fabric.Nop().Defer(), fabric.Wait(a.sendCQ.Number(), 1<<40), fabric.Nop()))
		check(t, a.qp.PostRecv(fabric.Recv(1), fabric.Recv(2)))
		for range 3 {
			wantStatus(t, next(t, a.sendCQ), fabric.Flushed)
		}
		for want := uint64(1); want <= 2; want++ {
			if c := next(t, a.recvCQ); c.ID != want || c.Status != fabric.Flushed {
				t.Fatalf("got %+v", c)
			}
		}
	})
	s.test(t, "a wait ends with its context", func(t *testing.T, a, _ *end) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.sendCQ.Wait(ctx) }()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		fresh := a.newQP(fabric.QPConfig{})
		if err := fresh.Ready(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	})
	s.test(t, "a wait ends with its device", func(t *testing.T, a, _ *end) {
		done := make(chan error)
		go func() { done <- a.sendCQ.Wait(t.Context()) }()
		check(t, a.dev.Close())
		if err := <-done; !errors.Is(err, fabric.ErrClosed) {
			t.Fatalf("got %v", err)
		}
	})
	s.test(t, "a wait ends with its domain", func(t *testing.T, a, _ *end) {
		done := make(chan error)
		go func() { done <- a.sendCQ.Wait(t.Context()) }()
		check(t, a.dom.Close())
		if err := <-done; !errors.Is(err, fabric.ErrClosed) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("a queue that only counts can be waited for", func(t *testing.T) {
		a := newEnd(t, s.Open(t, "a")[0], fabric.QPConfig{})
		counter := must(a.dom.NewCQ(0))(t)
		q := must(a.dom.NewQP(fabric.QPConfig{SendCQ: counter, RecvCQ: counter}))(t)
		connect(t, q, q)
		for i := range uint64(20) {
			check(t, q.Post(fabric.Nop(), fabric.Nop().Signal(1)))
			check(t, counter.WaitPast(t.Context(), i))
			if n := counter.Count(); n != i+1 || counter.Poll(make([]fabric.Completion, 1)) != 0 {
				t.Fatalf("after %d completions the count is %d", i+1, n)
			}
			eventually(t, "the slots are free", func() bool { return q.Done() == 2*(i+1) })
		}
	})
	s.test(t, "a completion queue in use cannot be closed", func(t *testing.T, a, _ *end) {
		if a.sendCQ.Close() == nil {
			t.Fatal("it was closed")
		}
		check(t, a.qp.Close())
		check(t, a.sendCQ.Close())
	})
}

func (s Suite) testFullCQ(t *testing.T) {
	d := s.Open(t, "a")[0]
	a := newEnd(t, d, fabric.QPConfig{})
	small := must(a.dom.NewCQ(4))(t)
	q := must(a.dom.NewQP(fabric.QPConfig{SendCQ: small, RecvCQ: small, SendDepth: 64, RecvDepth: 64}))(t)
	connect(t, q, q)
	for i := range uint64(30) {
		check(t, q.PostRecv(fabric.Recv(100+i, a.piece(8, 8))))
		check(t, q.Post(fabric.Send(a.piece(0, 8)).Signal(i)))
	}
	var sent, received uint64
	for range 60 {
		switch c := next(t, small); {
		case c.Status != fabric.OK:
			t.Fatalf("got %+v", c)
		case c.Op == fabric.OpRecv && c.ID == 100+received:
			received++
		case c.Op == fabric.OpSend && c.ID == sent:
			sent++
		default:
			t.Fatalf("out of order: %+v", c)
		}
	}
}
