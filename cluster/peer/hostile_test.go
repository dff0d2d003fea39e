package peer_test

import (
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/fabric/frame"
)

func TestWhoDoesNotKnowTheSecretIsRefused(t *testing.T) {
	s := listen(t, "127.0.0.1:0", withEcho)
	p := pool(t, s.addr(), func(o *peer.PoolOptions) { o.Secret = []byte("guess") })
	if _, err := p.Call(ctx(t), "callee", "echo", nil, nil, nil); !errors.Is(err, peer.ErrUnreachable) || !errors.Is(err, frame.ErrUnauthorized) {
		t.Fatalf("got %v", err)
	}
}

func TestANodeThatLivesElsewhereIsNotMistakenForAnother(t *testing.T) {
	p := pool(t, listen(t, "127.0.0.1:0", withEcho).addr())
	if _, err := p.Call(ctx(t), "somebody", "echo", nil, nil, nil); !errors.Is(err, peer.ErrUnreachable) || !strings.Contains(err.Error(), "this is node callee") {
		t.Fatalf("got %v", err)
	}
}

// enter is a connection that passed the greeting.
func enter(t *testing.T, s *place) net.Conn {
	t.Helper()
	return greeted(t, must(net.Dial("tcp", s.addr()))(t))
}

func greeted(t *testing.T, c net.Conn) net.Conn {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
	check(t, c.SetDeadline(time.Now().Add(time.Minute)))
	check(t, frame.Introduce(c, peer.Magic, secret, []byte(`{"node":"caller","to":"callee"}`)))
	check(t, frame.Answered(c))
	return c
}

func TestNonsenseEndsItsConnectionAndNoOther(t *testing.T) {
	s := listen(t, "127.0.0.1:0", withEcho)
	p := pool(t, s.addr())
	must(p.Call(ctx(t), "callee", "echo", question{}, nil, nil))(t)
	good := peer.EncodeRequest(1, "echo", []byte("{}"), []byte("bulk"))
	cases := map[string][]byte{
		"no frame":    make([]byte, 64),
		"huge head":   peer.EncodeSizes(1<<31, 0),
		"huge bulk":   peer.EncodeSizes(0, 1<<31),
		"an answer":   peer.EncodeAnswer(1),
		"a flipped b": flip(good, len(good)-1),
	}
	for at := range good {
		cases["flip"+string(rune('0'+at))] = flip(good, at)
	}
	for name, bytes := range cases {
		c := enter(t, s)
		_, err := c.Write(bytes)
		check(t, err)
		check(t, c.(*net.TCPConn).CloseWrite()) // Or a length that grew would wait for the rest.
		if rest, err := io.ReadAll(c); len(rest) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: got %d bytes, %v", name, len(rest), err)
		}
	}
	must(p.Call(ctx(t), "callee", "echo", question{}, nil, nil))(t)
	if s.Metrics().Malformed == 0 {
		t.Error("nobody counted")
	}
}

func flip(b []byte, at int) []byte {
	c := append([]byte(nil), b...)
	c[at] ^= 0x10
	return c
}

func TestEveryCutOfARequestIsTakenForNone(t *testing.T) {
	s := listen(t, "127.0.0.1:0", withEcho)
	good := peer.EncodeRequest(1, "echo", []byte("{}"), []byte("bulk"))
	for cut := range good {
		c := enter(t, s)
		_, err := c.Write(good[:cut])
		check(t, err)
		check(t, c.(*net.TCPConn).CloseWrite())
		if rest, err := io.ReadAll(c); len(rest) > 0 || err != nil {
			t.Fatalf("cut at %d: got %d bytes, %v", cut, len(rest), err)
		}
	}
	if n := s.Metrics().Calls; n != 0 {
		t.Fatalf("%d calls were taken", n)
	}
}

func TestStrangersSayingAnythingAreSentAway(t *testing.T) {
	s := listen(t, "127.0.0.1:0", withEcho)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		c := must(net.Dial("tcp", s.addr()))(t)
		b := append([]byte(peer.Magic), make([]byte, r.IntN(300))...)
		for i := range b[8:] {
			b[8+i] = byte(r.Uint32())
		}
		_, _ = c.Write(b)
		_ = c.Close()
	}
	must(pool(t, s.addr()).Call(ctx(t), "callee", "echo", question{}, nil, nil))(t)
}

func TestACalleeThatTalksNonsenseFailsItsCallsOnly(t *testing.T) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := frame.Hear(c, peer.Magic, secret); err == nil {
				_ = frame.Accept(c)
				_, _ = c.Write(make([]byte, 100))
			}
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	p := pool(t, l.Addr().String())
	for _, bulk := range [][]byte{nil, make([]byte, 1<<20)} {
		if _, err := p.Call(ctx(t), "callee", "echo", nil, bulk, nil); !errors.Is(err, peer.ErrLost) && !errors.Is(err, peer.ErrUnreachable) {
			t.Fatalf("got %v", err)
		}
	}
	check(t, p.Close())
}

func TestCallsTravelThroughTLS(t *testing.T) {
	cert, roots := certificate(t)
	plain := listen(t, "127.0.0.1:0", withEcho)
	l := tls.NewListener(must(net.Listen("tcp", "127.0.0.1:0"))(t), &tls.Config{Certificates: []tls.Certificate{cert}})
	secure := &place{t: t, Server: plain.Server, l: l}
	secure.wait.Go(secure.accept)
	defer secure.wait.Wait()
	defer l.Close()
	p := pool(t, l.Addr().String(), func(o *peer.PoolOptions) { o.TLS = &tls.Config{RootCAs: roots} })
	for _, bulk := range [][]byte{nil, make([]byte, 1<<20)} {
		must(p.Call(ctx(t), "callee", "echo", question{}, bulk, nil))(t)
	}
	stranger := pool(t, l.Addr().String(), func(o *peer.PoolOptions) { o.TLS = &tls.Config{} })
	if _, err := stranger.Call(ctx(t), "callee", "echo", question{}, nil, nil); !errors.Is(err, peer.ErrUnreachable) {
		t.Fatalf("a callee whose certificate nobody knows was trusted: %v", err)
	}
	check(t, p.Close())
	check(t, secure.Server.Close())
}

func FuzzFramesThatDecodeEncodeToThemselves(f *testing.F) {
	f.Add(peer.EncodeRequest(1, "echo", []byte("{}"), []byte("bulk")))
	f.Add(peer.EncodeAnswer(7))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, ok := peer.Recode(in)
		if ok && string(out) != string(in[:len(out)]) {
			t.Fatalf("%x became %x", in, out)
		}
	})
}
