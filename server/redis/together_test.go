package redis_test

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
)

// What arrives while a loop is held is there together when it goes on.

func TestRequestsAndTheirEndThatComeTogetherAreBothSeen(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{Loops: 1})
	for _, requests := range []int{0, 1, 3, 2000} {
		c := dial(t, "tcp", srv.Addr().String())
		sendTo(t, c, bulk("SET", "k", "value"))
		expect(t, c, "+OK\r\n")
		release := srv.HoldLoop(0)
		sendTo(t, c, strings.Repeat(bulk("GET", "k"), requests))
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		release()
		if got, want := expectEnd(t, c), strings.Repeat("$5\r\nvalue\r\n", requests); got != want {
			t.Fatalf("%d requests: got %d bytes, want %d", requests, len(got), len(want))
		}
	}
}

func TestInputBeyondOneReadIsNotForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ostro.sock")
	srv := startServer(t, store.Options{}, redis.Config{Loops: 1, Port: -1, UnixSocket: path})
	c := dial(t, "unix", path).(*net.UnixConn)
	if err := c.SetWriteBuffer(1 << 20); err != nil {
		t.Fatal(err)
	}
	input, want := echoes(6000) // more than twice what one read takes, less than the socket
	release := srv.HoldLoop(0)
	sendTo(t, c, input)
	release()
	expect(t, c, want)
	release = srv.HoldLoop(0)
	sendTo(t, c, input)
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	release()
	if got := expectEnd(t, c); got != want {
		t.Fatalf("got %d bytes before the end, want %d", len(got), len(want))
	}
}

// echoes is a pipeline and its replies.
func echoes(n int) (input, want string) {
	var in, out strings.Builder
	for i := range n {
		in.WriteString(bulk("ECHO", fmt.Sprint(i)))
		fmt.Fprintf(&out, "$%d\r\n%d\r\n", len(fmt.Sprint(i)), i)
	}
	return in.String(), out.String()
}

func TestAClientThatVanishesWithRequestsUnderWayIsForgotten(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{Loops: 1})
	for _, linger := range []int{-1, 0} { // an orderly end, and a reset
		c := dial(t, "tcp", srv.Addr().String())
		sendTo(t, c, bulk("SET", "k", strings.Repeat("x", 100_000)))
		expect(t, c, "+OK\r\n")
		release := srv.HoldLoop(0)
		sendTo(t, c, strings.Repeat(bulk("GET", "k"), 2000))
		if err := c.(*net.TCPConn).SetLinger(linger); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		release()
		await.True(t, "the client is gone", func() bool { return srv.Metrics().Clients == 0 })
	}
}
