package peer_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/cluster/peer"
)

// pieces answers with what it was asked, cut into pieces of one to a few bytes, and counts those it
// got back.
type pieces struct{ given, back atomic.Int64 }

func (p *pieces) answer(_ context.Context, c *peer.Call) (any, []byte, error) {
	var list [][]byte
	for n, rest := 1, c.Bulk; len(rest) > 0; n = n%7 + 1 {
		n = min(n, len(rest))
		list, rest = append(list, rest[:n]), rest[n:]
	}
	p.given.Add(1)
	c.Gather(list, func() { p.back.Add(1) })
	if string(c.Head) == "fail" {
		return nil, nil, errors.New("no")
	}
	return peer.Raw("head"), []byte("front "), nil
}

func TestAnAnswerInPiecesArrivesInOneAndThePiecesComeBack(t *testing.T) {
	var p pieces
	at := listen(t, "127.0.0.1:0", func(s *peer.Server) {
		s.Handle("pieces", p.answer)
		s.HandleInOrder("in order", p.answer)
	})
	l := must(pool(t, at.addr()).Line("callee"))(t)
	defer l.Close()
	for _, method := range []string{"pieces", "in order"} {
		for _, n := range []int{0, 1, 1000, 100_000} {
			bulk := bytes.Repeat([]byte("abcdefgh"), n)
			var head peer.Raw
			got := must(l.Call(ctx(t), method, peer.Raw("ask"), bulk, &head))(t)
			if string(head) != "head" || !bytes.Equal(got, append([]byte("front "), bulk...)) {
				t.Fatalf("%s, %d bytes: got %q and %d bytes", method, n, head, len(got))
			}
		}
		if _, err := l.Call(ctx(t), method, peer.Raw("fail"), []byte("x"), nil); err == nil {
			t.Fatal("an error did not arrive")
		}
	}
	check(t, at.Server.Close()) // No handler runs any more.
	if p.given.Load() != p.back.Load() {
		t.Errorf("%d times pieces were given, %d times they came back", p.given.Load(), p.back.Load())
	}
}

func TestCallsOfALineDoNotWaitForThoseOfOthers(t *testing.T) {
	release := make(chan struct{})
	at := listen(t, "127.0.0.1:0", func(s *peer.Server) {
		withEcho(s)
		s.HandleInOrder("slow", func(ctx context.Context, c *peer.Call) (any, []byte, error) {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return nil, nil, nil
		})
	})
	p := pool(t, at.addr())
	slow, quick := must(p.Line("callee"))(t), must(p.Line("callee"))(t)
	defer slow.Close()
	defer quick.Close()
	done := make(chan error, 1)
	go func() {
		_, err := slow.Call(ctx(t), "slow", nil, nil, nil)
		done <- err
	}()
	for range 3 {
		must(quick.Call(ctx(t), "echo", question{"hello"}, nil, nil))(t)
	}
	close(release)
	check(t, <-done)
}

func TestALineConnectsAgainAfterACallThatFailed(t *testing.T) {
	at := listen(t, "127.0.0.1:0", withEcho)
	p := pool(t, at.addr())
	l := must(p.Line("callee"))(t)
	defer l.Close()
	must(l.Call(ctx(t), "echo", question{"hello"}, nil, nil))(t)
	p.Drop("callee")
	if _, err := l.Call(ctx(t), "echo", question{"hello"}, nil, nil); !errors.Is(err, peer.ErrLost) {
		t.Fatalf("a call on a connection that was dropped: %v", err)
	}
	must(l.Call(ctx(t), "echo", question{"hello"}, nil, nil))(t)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Call(over, "echo", question{"hello"}, nil, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("a call that was over before it began: %v", err)
	}
	must(l.Call(ctx(t), "echo", question{"hello"}, nil, nil))(t)
	check(t, l.Close())
	if _, err := l.Call(ctx(t), "echo", question{"hello"}, nil, nil); !errors.Is(err, peer.ErrClosed) {
		t.Fatalf("a call on a closed line: %v", err)
	}
}

func TestALineThatConnectedAheadIsUsedAndLosesNothingIfItsConnectionDied(t *testing.T) {
	at := listen(t, "127.0.0.1:0", withEcho)
	p := pool(t, at.addr())
	l := must(p.Line("callee"))(t)
	defer l.Close()
	check(t, l.Connect(ctx(t)))
	check(t, l.Connect(ctx(t)))
	must(l.Call(ctx(t), "echo", question{"hello"}, nil, nil))(t)
	p.Drop("callee")
	if _, err := l.Call(ctx(t), "echo", question{"hello"}, nil, nil); !errors.Is(err, peer.ErrLost) {
		t.Fatalf("a call on a connection that was dropped: %v", err)
	}
	check(t, l.Connect(ctx(t)))
	must(l.Call(ctx(t), "echo", question{"hello"}, nil, nil))(t)
	check(t, l.Close())
	if err := l.Connect(ctx(t)); !errors.Is(err, peer.ErrClosed) {
		t.Fatalf("a closed line connects: %v", err)
	}
}

func TestPiecesTravelThroughTLSToo(t *testing.T) {
	var p pieces
	own, roots := certificate(t)
	plain := listen(t, "127.0.0.1:0", func(s *peer.Server) { s.HandleInOrder("pieces", p.answer) })
	secure := &place{t: t, Server: plain.Server, l: tls.NewListener(must(net.Listen("tcp", "127.0.0.1:0"))(t), &tls.Config{Certificates: []tls.Certificate{own}})}
	secure.wait.Go(secure.accept)
	defer secure.wait.Wait()
	defer secure.l.Close()
	l := must(pool(t, secure.addr(), func(o *peer.PoolOptions) { o.TLS = &tls.Config{RootCAs: roots} }).Line("callee"))(t)
	defer l.Close()
	bulk := slices.Repeat([]byte("abc"), 50_000)
	got := must(l.Call(ctx(t), "pieces", nil, bulk, nil))(t)
	if !bytes.Equal(got, append([]byte("front "), bulk...)) {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestCallsOnTheirWayTogetherAreAnsweredInTheirOrder(t *testing.T) {
	var p pieces
	at := listen(t, "127.0.0.1:0", func(s *peer.Server) { s.HandleQuietly("pieces", p.answer) })
	l := must(pool(t, at.addr()).Line("callee"))(t)
	defer l.Close()
	bulk := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 1000*n) }
	const rounds, together = 50, 7
	sent := 0
	send := func() {
		head := peer.Raw("ask")
		if sent++; sent%5 == 0 {
			head = peer.Raw("fail")
		}
		check(t, l.Send(ctx(t), "pieces", head, bulk(sent)))
	}
	for range together {
		send()
	}
	for got := 1; got <= rounds; got++ {
		head, b, err := l.Receive(ctx(t))
		switch {
		case got%5 == 0 && err == nil:
			t.Fatalf("call %d did not fail", got)
		case got%5 != 0 && (err != nil || string(head) != "head" || !bytes.Equal(b, append([]byte("front "), bulk(got)...))):
			t.Fatalf("call %d: %q, %d bytes, %v", got, head, len(b), err)
		}
		if sent < rounds {
			send()
		}
	}
	if _, _, err := l.Receive(ctx(t)); err == nil {
		t.Error("an answer to nothing")
	}
	check(t, at.Server.Close())
	if p.given.Load() != p.back.Load() {
		t.Errorf("%d times pieces were given, %d times they came back", p.given.Load(), p.back.Load())
	}
}

func TestWhatIsUnderWayIsLostWithTheConnectionAndTheLineGoesOn(t *testing.T) {
	var p pieces
	at := listen(t, "127.0.0.1:0", func(s *peer.Server) { s.HandleQuietly("pieces", p.answer) })
	from := pool(t, at.addr())
	l := must(from.Line("callee"))(t)
	defer l.Close()
	ask := func() error { return l.Send(ctx(t), "pieces", peer.Raw("ask"), []byte("abc")) }
	for range 3 {
		check(t, ask())
	}
	from.Drop("callee")
	if _, _, err := l.Receive(ctx(t)); !errors.Is(err, peer.ErrLost) {
		t.Fatalf("a connection that was dropped: %v", err)
	}
	check(t, ask())
	if _, b, err := l.Receive(ctx(t)); err != nil || string(b) != "front abc" {
		t.Fatalf("%q, %v", b, err)
	}
}

func TestCallsThatTheCalleeDoesNotTakeEndWithTheirContext(t *testing.T) {
	release := make(chan struct{})
	at := listen(t, "127.0.0.1:0", func(s *peer.Server) {
		s.HandleInOrder("wait", func(context.Context, *peer.Call) (any, []byte, error) {
			<-release
			return nil, nil, nil
		})
	})
	defer close(release)
	l := must(pool(t, "by pipe", func(o *peer.PoolOptions) { o.Dial = at.dialTightly }).Line("callee"))(t)
	defer l.Close()
	check(t, l.Send(ctx(t), "wait", nil, nil))
	over, cancel := context.WithCancel(ctx(t))
	cancel()
	var err error
	for n := 0; err == nil && n < 100; n++ { // The callee has read the first few, and reads no more.
		err = l.Send(over, "wait", nil, nil)
	}
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
