package peer_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/internal/await"
)

// borrowed answers from memory that is another's as soon as it was given back. It may be what a whole node waits for.
type borrowed struct{ given, back atomic.Int64 }

// much is more than a connection holds on its way.
var much = bytes.Repeat([]byte("abc"), 5<<20)

func (b *borrowed) answer(_ context.Context, c *peer.Call) (any, []byte, error) {
	memory := bytes.Clone(c.Head)
	if string(c.Head) == "much" {
		memory = bytes.Clone(much)
	}
	b.given.Add(1)
	c.Gather([][]byte{memory[:1], memory[1:]}, func() {
		clear(memory)
		b.back.Add(1)
	})
	return nil, nil, nil
}

func (b *borrowed) serve(s *peer.Server) {
	s.HandleQuietly("in order", b.answer)
	s.Handle("at once", b.answer)
}

// serveWithFlush has also a method that tells how its flush ended.
func (b *borrowed) serveWithFlush(flushed chan<- error) func(*peer.Server) {
	return func(s *peer.Server) {
		b.serve(s)
		s.HandleInOrder("flushes", func(_ context.Context, c *peer.Call) (any, []byte, error) {
			flushed <- c.Flush()
			return nil, nil, nil
		})
	}
}

// allBack waits until so many answers at least were made and none keeps its memory.
func (b *borrowed) allBack(t *testing.T, atLeast int64) {
	t.Helper()
	await.True(t, "answers were made and their memory is free", func() bool {
		back := b.back.Load() // First: what is given may have grown since.
		return back >= atLeast && back == b.given.Load()
	})
}

// ask sends requests together and reads nothing.
func ask(t *testing.T, c net.Conn, requests ...[]byte) {
	t.Helper()
	must(c.Write(slices.Concat(requests...)))(t)
}

func request(method, head string) []byte { return peer.EncodeRequest(1, method, []byte(head), nil) }

func TestACallerThatTakesNoAnswersKeepsNoneOfTheirPieces(t *testing.T) {
	const calls = 3
	plain := func(t *testing.T, p *place) net.Conn { return enter(t, p) }
	for _, c := range []struct {
		name, method string
		connect      func(*testing.T, *place) net.Conn
		made         int64 // Who answers in order begins nothing while it waits for the caller.
	}{{"in order", "in order", plain, 1}, {"at once", "at once", plain, calls}, {"over TLS", "in order", enterSecurely, 1}} {
		t.Run(c.name, func(t *testing.T) {
			var b borrowed
			conn := c.connect(t, listen(t, "127.0.0.1:0", b.serve))
			for range calls {
				ask(t, conn, request(c.method, "much"))
			}
			b.allBack(t, c.made)
			for n := range calls {
				if got, err := peer.ReadBulk(conn); err != nil || !bytes.Equal(got, much) {
					t.Fatalf("answer %d: %d bytes, as they were given: %v, %v", n, len(got), bytes.Equal(got, much), err)
				}
			}
		})
	}
}

// enterSecurely is enter over TLS.
func enterSecurely(t *testing.T, at *place) net.Conn {
	own, roots := certificate(t)
	secure := &place{t: t, Server: at.Server, l: tls.NewListener(must(net.Listen("tcp", "127.0.0.1:0"))(t), &tls.Config{Certificates: []tls.Certificate{own}})}
	secure.wait.Go(secure.accept)
	t.Cleanup(secure.close)
	return greeted(t, must(tls.Dial("tcp", secure.addr(), &tls.Config{RootCAs: roots}))(t))
}

func TestAnAnswerDoesNotWaitForTheRestOfTheNextRequest(t *testing.T) {
	var b borrowed
	c := enter(t, listen(t, "127.0.0.1:0", b.serve))
	next := request("in order", "second")
	ask(t, c, request("in order", "first"), next[:len(next)-1])
	for _, want := range []string{"first", "second"} {
		if got, err := peer.ReadBulk(c); err != nil || string(got) != want {
			t.Fatalf("got %q instead of %q: %v", got, want, err)
		}
		b.allBack(t, 1)
		ask(t, c, next[len(next)-1:])
	}
}

func TestAnAnswerDoesNotWaitForAHandlerThatWaits(t *testing.T) {
	for _, method := range []string{"waits in order", "waits"} {
		t.Run(method, func(t *testing.T) {
			var b borrowed
			waits := func(_ context.Context, c *peer.Call) (any, []byte, error) {
				err := c.Flush()
				b.allBack(t, 1)
				return nil, nil, err
			}
			c := enter(t, listen(t, "127.0.0.1:0", func(s *peer.Server) {
				b.serve(s)
				s.HandleInOrder("waits in order", waits)
				s.Handle("waits", waits)
			}))
			ask(t, c, request("in order", "first"), request(method, ""))
			if got, err := peer.ReadBulk(c); err != nil || string(got) != "first" {
				t.Fatalf("got %q: %v", got, err)
			}
			must(peer.ReadBulk(c))(t)
		})
	}
}

// The handler may hold what others wait for, and those would wait for its caller.
func TestAFlushWaitsForNoCaller(t *testing.T) {
	var b borrowed
	flushed := make(chan error)
	at := listen(t, "127.0.0.1:0", b.serveWithFlush(flushed))
	c := enterTightly(t, at)
	ask(t, c, request("in order", "first"), request("flushes", ""), request("in order", "third"), request("flushes", ""))
	for n := range int64(2) { // Nobody reads anything meanwhile.
		check(t, <-flushed)
		b.allBack(t, n+1)
	}
	for _, want := range []string{"first", "", "third", ""} {
		if got, err := peer.ReadBulk(c); err != nil || string(got) != want {
			t.Fatalf("got %q instead of %q: %v", got, want, err)
		}
	}
}

// Nobody reads what a handler has left to others: they end with the connection.
func TestAServerClosesThoughWhatAFlushLeftIsNeverRead(t *testing.T) {
	var b borrowed
	flushed := make(chan error)
	at := listen(t, "127.0.0.1:0", b.serveWithFlush(flushed))
	ask(t, enterTightly(t, at), request("in order", "first"), request("flushes", ""))
	check(t, <-flushed)
	check(t, at.Server.Close())
	b.allBack(t, 1)
}

// enterTightly is enter on a connection that holds nothing on its way: a write waits until all of it was read.
func enterTightly(t *testing.T, at *place) net.Conn {
	t.Helper()
	return greeted(t, must(at.dialTightly(t.Context(), ""))(t))
}

// dialTightly is how a pool gets such connections.
func (p *place) dialTightly(context.Context, string) (net.Conn, error) {
	near, far := net.Pipe()
	p.wait.Go(func() { p.Server.ServeConn(far) })
	return near, nil
}
