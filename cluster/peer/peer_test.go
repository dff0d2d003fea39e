package peer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/internal/port"
)

func TestMain(m *testing.M) { os.Exit(await.RunToEnd(m)) }

var secret = []byte("tell nobody")

// place is a server at an address of its own.
type place struct {
	t *testing.T
	*peer.Server
	l    net.Listener
	wait sync.WaitGroup
}

func listen(t *testing.T, addr string, handle func(*peer.Server)) *place {
	t.Helper()
	l := must(net.Listen("tcp", addr))(t)
	s := must(peer.NewServer(peer.ServerOptions{Node: "callee", Secret: secret}))(t)
	handle(s)
	p := &place{t: t, Server: s, l: l}
	p.wait.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *place) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		p.wait.Go(func() {
			first, whole, err := peer.Peek(c, time.Minute)
			if err != nil || string(first[:]) != peer.Magic {
				_ = c.Close()
				return
			}
			p.ServeConn(whole)
		})
	}
}

func (p *place) close() {
	_ = p.l.Close()
	check(p.t, p.Server.Close())
	p.wait.Wait()
}

func (p *place) addr() string { return p.l.Addr().String() }

func pool(t *testing.T, addr string, change ...func(*peer.PoolOptions)) *peer.Pool {
	t.Helper()
	o := peer.PoolOptions{Node: "caller", Secret: secret, DialTimeout: time.Minute, Address: func(view.NodeID) (string, error) { return addr, nil }}
	for _, c := range change {
		c(&o)
	}
	p := must(peer.NewPool(o))(t)
	t.Cleanup(func() { check(t, p.Close()) })
	return p
}

type question struct{ Text string }

func echo(_ context.Context, c *peer.Call) (any, []byte, error) {
	var q question
	if err := c.Bind(&q); err != nil {
		return nil, nil, err
	}
	return question{string(c.From) + ": " + q.Text}, c.Bulk, nil
}

func withEcho(s *peer.Server) { s.Handle("echo", echo) }

func ctx(t *testing.T) context.Context {
	t.Helper()
	c, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return c
}

func TestACallCarriesHeadAndBulkBothWaysAndSaysWhoCalls(t *testing.T) {
	p := pool(t, listen(t, "127.0.0.1:0", withEcho).addr())
	for _, n := range []int{0, 1, 1000, 100_000, peer.MaxBulkBytes} {
		var a question
		bulk := bytes.Repeat([]byte{'x'}, n)
		got := must(p.Call(ctx(t), "callee", "echo", question{"hello"}, bulk, &a))(t)
		if a.Text != "caller: hello" || !bytes.Equal(got, bulk) {
			t.Fatalf("%d bytes: got %q and %d bytes", n, a.Text, len(got))
		}
	}
}

func TestCallsOfOneConnectionEndInAnyOrder(t *testing.T) {
	release := make(chan struct{})
	s := listen(t, "127.0.0.1:0", func(s *peer.Server) {
		withEcho(s)
		s.Handle("slow", func(ctx context.Context, c *peer.Call) (any, []byte, error) {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return echo(ctx, c)
		})
	})
	p := pool(t, s.addr())
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			var a question
			if _, err := p.Call(ctx(t), "callee", "slow", question{fmt.Sprint(i)}, nil, &a); err != nil || a.Text != fmt.Sprint("caller: ", i) {
				t.Errorf("call %d: %q, %v", i, a.Text, err)
			}
		})
	}
	for s.Metrics().Calls < 50 {
		must(p.Call(ctx(t), "callee", "echo", question{"first"}, nil, nil))(t)
	}
	if n := s.Metrics().Conns; n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	close(release)
	all.Wait()
}

func TestCallsInOrderAreTakenAsTheyWereSent(t *testing.T) {
	var got []byte
	p := pool(t, listen(t, "127.0.0.1:0", func(s *peer.Server) {
		withEcho(s)
		s.HandleInOrder("append", func(_ context.Context, c *peer.Call) (any, []byte, error) {
			got = append(got, c.Bulk...)
			return nil, nil, nil
		})
	}).addr())
	must(p.Call(ctx(t), "callee", "echo", question{}, nil, nil))(t)
	var want []byte
	var all sync.WaitGroup
	for i := range 10_000 {
		want = append(want, byte(i), byte(i>>8))
		all.Add(1)
		p.Go(ctx(t), "callee", "append", peer.Raw("raw"), []byte{byte(i), byte(i >> 8)}, func(_, _ []byte, err error) {
			if err != nil {
				t.Error(err)
			}
			all.Done()
		})
	}
	all.Wait()
	if !bytes.Equal(got, want) {
		t.Fatal("they came in another order")
	}
}

var errOwn = peer.NewCode("own", "an error of its own")

func TestErrorsKeepTheirCode(t *testing.T) {
	p := pool(t, listen(t, "127.0.0.1:0", func(s *peer.Server) {
		s.Handle("fail", func(context.Context, *peer.Call) (any, []byte, error) {
			return nil, nil, fmt.Errorf("%w, and why", errOwn)
		})
	}).addr())
	for _, bulk := range [][]byte{nil, make([]byte, 1<<20)} {
		_, err := p.Call(ctx(t), "callee", "fail", nil, bulk, nil)
		if !errors.Is(err, errOwn) || !strings.Contains(err.Error(), "and why") || errors.Is(err, peer.ErrUnknownMethod) {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := p.Call(ctx(t), "callee", "no such", nil, nil, nil); !errors.Is(err, peer.ErrUnknownMethod) {
		t.Fatalf("got %v", err)
	}
}

func TestAHandlerStopsWhenItsCallerNoLongerWaits(t *testing.T) {
	stopped := make(chan error, 1)
	begun := make(chan struct{}, 1)
	p := pool(t, listen(t, "127.0.0.1:0", func(s *peer.Server) {
		s.Handle("wait", func(ctx context.Context, c *peer.Call) (any, []byte, error) {
			begun <- struct{}{}
			<-ctx.Done()
			stopped <- ctx.Err()
			return nil, nil, ctx.Err()
		})
	}).addr())
	for _, bulk := range [][]byte{nil, make([]byte, 1<<20)} {
		c, cancel := context.WithCancel(ctx(t))
		ended := make(chan error, 1)
		go func() {
			_, err := p.Call(c, "callee", "wait", nil, bulk, nil)
			ended <- err
		}()
		<-begun
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("the caller got %v", err)
		}
		if err := <-stopped; !errors.Is(err, context.Canceled) {
			t.Fatalf("the handler got %v", err)
		}
	}
	whole := ctx(t)
	for long := 5 * time.Second; ; long *= 2 {
		c, cancel := context.WithTimeout(whole, long)
		_, err := p.Call(c, "callee", "wait", nil, nil, nil)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			var said *peer.Error
			if !errors.As(err, &said) { // The handler may be first to say so.
				t.Fatalf("got %v", err)
			}
		}
		select {
		case <-begun:
			<-stopped
			return
		default: // That was not long enough for the call to get there.
			check(t, whole.Err())
		}
	}
}

func withCount(s *peer.Server) {
	s.Handle("count", func(_ context.Context, c *peer.Call) (any, []byte, error) {
		for i := range 100 {
			if err := c.Send(question{fmt.Sprint(i)}, bytes.Repeat([]byte{byte(i)}, 100_000)); err != nil {
				return nil, nil, err
			}
		}
		return question{"end"}, nil, nil
	})
}

func TestAStreamBringsItsPartsInOrderAndThenItsAnswer(t *testing.T) {
	s := listen(t, "127.0.0.1:0", withCount)
	p := pool(t, s.addr())
	for range 3 {
		st := must(p.Stream(ctx(t), "callee", "count", nil))(t)
		for i := range 101 {
			var q question
			bulk, last, err := st.Next(&q)
			switch {
			case err != nil:
				t.Fatal(err)
			case last != (i == 100) || last && q.Text != "end":
				t.Fatalf("part %d: %q, last %v", i, q.Text, last)
			case !last && (q.Text != fmt.Sprint(i) || !bytes.Equal(bulk, bytes.Repeat([]byte{byte(i)}, 100_000))):
				t.Fatalf("part %d is %q", i, q.Text)
			}
		}
		check(t, st.Close())
	}
	if n := s.Metrics().Conns; n != 1 {
		t.Errorf("%d connections for one stream after the other, want 1", n)
	}
}

func TestAStreamThatIsLeftEarlyHoldsNobodyUp(t *testing.T) {
	s := listen(t, "127.0.0.1:0", withCount)
	p := pool(t, s.addr())
	for range 10 {
		st := must(p.Stream(ctx(t), "callee", "count", nil))(t)
		if _, _, err := st.Next(nil); err != nil {
			t.Fatal(err)
		}
		check(t, st.Close())
	}
	await.True(t, "their handlers have found out", func() bool { return s.Metrics().Conns == 0 })
}

func TestAHandlerThatHangsUpWaitsForItsCallerNoLonger(t *testing.T) {
	calls, ended := make(chan *peer.Call, 1), make(chan struct{})
	s := listen(t, "127.0.0.1:0", func(s *peer.Server) {
		s.Handle("endless", func(_ context.Context, c *peer.Call) (any, []byte, error) {
			defer close(ended)
			calls <- c
			for {
				if err := c.Send(nil, make([]byte, 1<<20)); err != nil {
					return nil, nil, err
				}
			}
		})
	})
	st := must(pool(t, s.addr()).Stream(ctx(t), "callee", "endless", nil))(t)
	defer st.Close()
	(<-calls).HangUp()
	<-ended
	for _, _, err := st.Next(nil); err == nil; { // What was on its way may come.
		_, _, err = st.Next(nil)
	}
	peer.NewCall("caller", nil, nil, nil).HangUp() // It has no connection.
}

func TestACallAfterARestartMakesANewConnection(t *testing.T) {
	addr := port.For(t).Addr()
	s := listen(t, addr, withEcho)
	p := pool(t, addr)
	for range 3 {
		for _, bulk := range [][]byte{nil, make([]byte, 1<<20)} {
			for {
				_, err := p.Call(ctx(t), "callee", "echo", question{"again"}, bulk, nil)
				if err == nil {
					break
				}
				if !errors.Is(err, peer.ErrUnreachable) && !errors.Is(err, peer.ErrLost) {
					t.Fatal(err)
				}
			}
		}
		s.close()
		if _, err := p.Call(ctx(t), "callee", "echo", question{}, nil, nil); !errors.Is(err, peer.ErrUnreachable) && !errors.Is(err, peer.ErrLost) {
			t.Fatalf("got %v", err)
		}
		s = listen(t, addr, withEcho)
	}
}

func TestCallsUnderWayEndWithTheirConnection(t *testing.T) {
	begun := make(chan struct{}, 1)
	wait := func(s *peer.Server) {
		s.Handle("wait", func(ctx context.Context, _ *peer.Call) (any, []byte, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return nil, nil, ctx.Err()
		})
	}
	for _, bulk := range [][]byte{nil, make([]byte, 1<<20)} {
		for name, end := range map[string]func(*place, *peer.Pool){
			"the server closes": func(s *place, _ *peer.Pool) { s.close() },
			"the pool drops it": func(_ *place, p *peer.Pool) { p.Drop("callee") },
			"the pool closes":   func(_ *place, p *peer.Pool) { _ = p.Close() },
		} {
			s := listen(t, "127.0.0.1:0", wait)
			p := pool(t, s.addr())
			ended := make(chan error, 1)
			go func() {
				_, err := p.Call(ctx(t), "callee", "wait", nil, bulk, nil)
				ended <- err
			}()
			<-begun
			end(s, p)
			if err := <-ended; !errors.Is(err, peer.ErrLost) && !errors.Is(err, peer.ErrClosed) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
}

func TestTooMuchIsRefusedBeforeItIsSent(t *testing.T) {
	p := pool(t, listen(t, "127.0.0.1:0", withEcho).addr())
	if _, err := p.Call(ctx(t), "callee", "echo", question{}, make([]byte, peer.MaxBulkBytes+1), nil); err == nil {
		t.Fatal("more than a frame can carry was sent")
	}
	if _, err := p.Call(ctx(t), "callee", "echo", peer.Raw(make([]byte, peer.MaxHeadBytes+1)), nil, nil); err == nil {
		t.Fatal("more than a frame can carry was sent")
	}
	must(p.Call(ctx(t), "callee", "echo", question{}, nil, nil))(t)
}

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
