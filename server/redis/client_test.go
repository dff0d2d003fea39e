package redis_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
)

func clientID(t *testing.T, c *rawClient) string {
	t.Helper()
	r, err := c.do("client", "id")
	if err != nil {
		t.Fatal(err)
	}
	return r.text
}

func TestClientsCanBeKilledByIDAndAddress(t *testing.T) {
	addr := startOstro(t, redis.Config{Loops: 2})
	killer, a, b := dialRaw(t, addr), dialRaw(t, addr), dialRaw(t, addr)
	converse(t, a, [2]string{"PING", "+PONG"})
	converse(t, b, [2]string{"PING", "+PONG"})
	converse(t, killer, [][2]string{
		{"CLIENT KILL ID " + clientID(t, a), ":1"},
		{"CLIENT KILL " + b.conn.LocalAddr().String(), "+OK"},
		{"CLIENT KILL ID " + clientID(t, killer), ":0"}, // spares itself
	}...)
	for _, c := range []*rawClient{a, b} {
		if r, err := c.receive(); err == nil {
			t.Errorf("a killed client was told %q", r.raw)
		}
	}
	await.True(t, "both clients are gone", func() bool {
		r, err := killer.do("client", "list")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(r.text, "\n") == 1
	})
	converse(t, killer, [2]string{"CLIENT KILL ID " + clientID(t, killer) + " SKIPME no", ":1"})
	if r, err := killer.receive(); err == nil {
		t.Errorf("a client that killed itself was told %q", r.raw)
	}
}

func TestClientListTellsWhatClientsDo(t *testing.T) {
	addr := startOstro(t, redis.Config{})
	c, other := dialRaw(t, addr), dialRaw(t, addr)
	converse(t, other, [][2]string{
		{"CLIENT SETNAME worker", "+OK"},
		{"SELECT 3", "+OK"},
		{"MULTI", "+OK"},
		{"GET a", "+QUEUED"},
	}...)
	r, err := c.do("client", "list", "id", strconv.Itoa(2), "1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name=worker", "db=3", "multi=1", "flags=x", "cmd=", "addr=" + other.conn.LocalAddr().String(), "user=default", "resp=2"} {
		if !strings.Contains(r.text, want) {
			t.Errorf("CLIENT LIST does not say %s:\n%s", want, r.text)
		}
	}
}

func TestRepliesCanBeSwitchedOff(t *testing.T) {
	c := dialRaw(t, startOstro(t, redis.Config{}))
	for _, args := range [][]string{
		{"client", "reply", "skip"},
		{"incr", "n"}, // both silent
		{"incr", "n"},
		{"client", "reply", "off"},
		{"incr", "n"},
		{"incr", "nosuch", "x"},
		{"client", "reply", "skip"},
		{"incr", "n"},
		{"client", "reply", "on"},
		{"get", "n"},
	} {
		if err := c.send(args...); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{":2\r\n", "+OK\r\n", "$1\r\n4\r\n"} {
		if r, err := c.receive(); err != nil || r.raw != want {
			t.Fatalf("got %v, %v; want %q", r, err, want)
		}
	}
}

func TestAPauseHoldsWritersBack(t *testing.T) {
	addr := startOstro(t, redis.Config{Loops: 2})
	boss, writer := dialRaw(t, addr), dialRaw(t, addr)
	converse(t, writer, [2]string{"SET a 1", "+OK"})
	converse(t, boss, [2]string{"CLIENT PAUSE 100000 WRITE", "+OK"})
	converse(t, writer, [2]string{"GET a", "$1 1"})
	if err := writer.send("set", "a", "2"); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		converse(t, boss, [2]string{"GET a", "$1 1"})
	}
	converse(t, boss, [2]string{"CLIENT UNPAUSE", "+OK"})
	if r, err := writer.receive(); err != nil || r.raw != "+OK\r\n" {
		t.Fatalf("the postponed SET answers %v, %v", r, err)
	}
	converse(t, boss, [2]string{"GET a", "$1 2"})
}

// A loop that is being woken for something else must not miss that the pause is over.
func TestWhoIsPausedHearsOfTheEndWhateverElseTheLoopIsWokenFor(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{Loops: 1})
	c := dialRaw(t, srv.Addr().String())
	converse(t, c, [2]string{"PING", "+PONG"})
	for i := range 5000 {
		srv.PauseClients()
		if err := c.send("ping"); err != nil {
			t.Fatal(err)
		}
		for srv.Paused(0) == 0 {
		}
		for range i % 500 { // It is in the midst of a round when it is told.
			srv.Wake(0)
		}
		srv.UnpauseClients()
		if r, err := c.receive(); err != nil || r.raw != "+PONG\r\n" {
			t.Fatalf("after %d pauses: %v, %v", i, r, err)
		}
	}
}

func TestHelloTellsWhoIsThere(t *testing.T) {
	c := dialRaw(t, startOstro(t, redis.Config{}))
	r, err := c.do("hello", "3", "auth", "default", "anything", "setname", "me")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range r.items {
		got = append(got, item.text)
	}
	want := "server redis version 7.2.4 proto 3 id " + clientID(t, c) + " mode standalone role master modules 0"
	if line := strings.Join(got, " "); line != want || r.kind != '%' {
		t.Errorf("HELLO answers %q, want %q", line, want)
	}
	converse(t, c, [2]string{"CLIENT GETNAME", "$2 me"}, [2]string{"GET nosuch", "_"})
}
