package redis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/tenant/sched"
)

// patience is how long anything may take before it counts as hung: CI may be busy.
const patience = 5 * time.Minute

// dial connects, with a deadline on everything.
func dial(t testing.TB, network, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // Many tests close it themselves.
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

func sendTo(t testing.TB, c net.Conn, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if _, err := io.WriteString(c, p); err != nil {
			t.Fatal(err)
		}
	}
}

// expect reads exactly what should come.
func expect(t testing.TB, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(c, got)
	if err != nil || string(got) != want {
		t.Fatalf("got %.200q (%v), want %.200q", got[:n], err, want)
	}
}

// expectEnd reads until the server closes, and returns what came before. A
// reset counts as an end: the server need not read all that was sent.
func expectEnd(t testing.TB, c net.Conn) string {
	t.Helper()
	b, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("after %.200q: %v", b, err)
	}
	return string(b)
}

func bulk(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

func TestCommandsCutAnywhereAreAnsweredAlike(t *testing.T) {
	addr := startOstro(t, redis.Config{})
	input := bulk("SET", "k", "v\r\n") + "PING\r\n" + bulk("GET", "k") + bulk("GET", "none") + "ECHO 'a b'\r\n" + bulk("ECHO", "")
	want := "+OK\r\n+PONG\r\n$3\r\nv\r\n\r\n$-1\r\n$3\r\na b\r\n$0\r\n\r\n"
	whole := dial(t, "tcp", addr)
	sendTo(t, whole, input)
	expect(t, whole, want)
	c := dial(t, "tcp", addr)
	for cut := 1; cut < len(input); cut++ {
		// What is answered after the first part tells that it was read alone.
		sendTo(t, c, "PING\r\n", input[:cut])
		expect(t, c, "+PONG\r\n")
		sendTo(t, c, input[cut:])
		expect(t, c, want)
	}
}

func TestEveryByteAloneIsEnough(t *testing.T) {
	c := dial(t, "tcp", startOstro(t, redis.Config{}))
	for _, b := range []byte(bulk("SET", "key", "value") + bulk("GET", "key")) {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, c, "+OK\r\n$5\r\nvalue\r\n")
}

func TestALongPipelineIsAnsweredInOrder(t *testing.T) {
	addr := startOstro(t, redis.Config{})
	var input, want bytes.Buffer
	for i := range 10_000 {
		switch i % 5 {
		case 0:
			input.WriteString(bulk("SET", fmt.Sprint("k", i), fmt.Sprint("v", i)))
			want.WriteString("+OK\r\n")
		case 1, 2, 3:
			v := fmt.Sprint("v", i-i%5)
			input.WriteString(bulk("GET", fmt.Sprint("k", i-i%5)))
			fmt.Fprintf(&want, "$%d\r\n%s\r\n", len(v), v)
		case 4:
			input.WriteString(bulk("ECHO", "0123456789"))
			want.WriteString("$10\r\n0123456789\r\n")
		}
	}
	c := dial(t, "tcp", addr)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if _, err := c.Write(input.Bytes()); err != nil {
			t.Error(err)
		}
	})
	expect(t, c, want.String())
}

func TestGetsOfManyConnectionsAtOnceAreNotMixedUp(t *testing.T) {
	addr := startOstro(t, redis.Config{})
	var wg sync.WaitGroup
	for i := range 40 {
		c := dial(t, "tcp", addr)
		wg.Go(func() {
			key, value := fmt.Sprint("key", i), fmt.Sprint("value", i)
			ask := strings.Repeat(bulk("GET", key), 1+i%7)
			answer := strings.Repeat(fmt.Sprintf("$%d\r\n%s\r\n", len(value), value), 1+i%7)
			for range 200 {
				sendTo(t, c, bulk("SET", key, value)+ask)
				expect(t, c, "+OK\r\n"+answer)
			}
		})
	}
	wg.Wait()
}

func TestHugeValuesTravelBothWays(t *testing.T) {
	c := dial(t, "tcp", startOstro(t, redis.Config{}))
	value := strings.Repeat("0123456789abcdef", 2<<20) // 32 MiB
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { sendTo(t, c, bulk("SET", "huge", value), bulk("GET", "huge"), bulk("PING")) })
	expect(t, c, "+OK\r\n"+fmt.Sprintf("$%d\r\n", len(value)))
	expect(t, c, value)
	expect(t, c, "\r\n+PONG\r\n")
}

func TestACommandOfManyArgumentsArrivesInPieces(t *testing.T) {
	c := dial(t, "tcp", startOstro(t, redis.Config{}))
	args := []string{"MSET"}
	for i := range 50_000 {
		args = append(args, fmt.Sprint("key", i), fmt.Sprint("value", i))
	}
	sendTo(t, c, bulk(args...), bulk("GET", "key49999"), bulk("GET", "key1"))
	expect(t, c, "+OK\r\n$10\r\nvalue49999\r\n$6\r\nvalue1\r\n")
}

func TestPipelinedLargeRepliesComeInTurns(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{Loops: 1})
	greedy, modest := dial(t, "tcp", srv.Addr().String()), dial(t, "tcp", srv.Addr().String())
	value := strings.Repeat("x", 1<<20)
	sendTo(t, greedy, bulk("SET", "k", value))
	expect(t, greedy, "+OK\r\n")
	sendTo(t, greedy, strings.Repeat(bulk("GET", "k")+bulk("SET", "n", "1"), 100))
	sendTo(t, modest, bulk("GET", "n"))
	if _, err := modest.Read(make([]byte, 100)); err != nil { // before the other has read anything
		t.Fatal(err)
	}
	for range 100 {
		expect(t, greedy, "$1048576\r\n"+value+"\r\n+OK\r\n")
	}
}

func TestASlowReaderHoldsUpNobodyElse(t *testing.T) {
	addr := startOstro(t, redis.Config{Loops: 1})
	slow, other := dial(t, "tcp", addr), dial(t, "tcp", addr)
	value := strings.Repeat("x", 1<<20)
	sendTo(t, slow, bulk("SET", "k", value))
	expect(t, slow, "+OK\r\n")
	const gets = 200 // beyond what makes the server pause the client
	sendTo(t, slow, strings.Repeat(bulk("GET", "k"), gets))
	for range 100 {
		sendTo(t, other, bulk("PING"))
		expect(t, other, "+PONG\r\n")
	}
	for range gets {
		expect(t, slow, "$1048576\r\n"+value+"\r\n")
	}
	sendTo(t, slow, bulk("PING"))
	expect(t, slow, "+PONG\r\n")
}

func TestBrokenInputIsAnsweredAsRedisDoesAndTheConnectionCloses(t *testing.T) {
	addr := startOstro(t, redis.Config{})
	for input, want := range map[string]string{
		"*x\r\n":                                     "-ERR Protocol error: invalid multibulk length\r\n",
		"*1\r\n$-4\r\n":                              "-ERR Protocol error: invalid bulk length\r\n",
		"*1\r\n$536870913\r\n":                       "-ERR Protocol error: invalid bulk length\r\n",
		"*1\r\n!4\r\nPING\r\n":                       "-ERR Protocol error: expected '$', got '!'\r\n",
		"echo 'a\r\n":                                "-ERR Protocol error: unbalanced quotes in request\r\n",
		strings.Repeat("a", 70000):                   "-ERR Protocol error: too big inline request\r\n",
		"*" + strings.Repeat("1", 70000):             "-ERR Protocol error: too big mbulk count string\r\n",
		bulk("GET", "a") + "*x\r\n" + bulk("PING"):   "$-1\r\n-ERR Protocol error: invalid multibulk length\r\n",
		bulk("PING") + "QUIT\r\n" + bulk("PING"):     "+PONG\r\n+OK\r\n",
		"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n": "",
	} {
		c := dial(t, "tcp", addr)
		sendTo(t, c, input)
		if got := expectEnd(t, c); got != want {
			t.Errorf("%.40q: got %q, want %q", input, got, want)
		}
	}
}

func TestUnknownCommandsAndWrongArityGetRedisWords(t *testing.T) {
	c := dial(t, "tcp", startOstro(t, redis.Config{}))
	long := strings.Repeat("a", 200)
	for _, x := range []struct{ input, want string }{
		{bulk("nosuch"), "-ERR unknown command 'nosuch', with args beginning with: \r\n"},
		{bulk("NoSuch", "a", "b c"), "-ERR unknown command 'NoSuch', with args beginning with: 'a' 'b c' \r\n"},
		{bulk("a\r\nb", "c\nd"), "-ERR unknown command 'a  b', with args beginning with: 'c d' \r\n"},
		{bulk(long, long, "b"), "-ERR unknown command '" + long[:128] + "', with args beginning with: '" + long[:128] + "' \r\n"},
		{bulk("get"), "-ERR wrong number of arguments for 'get' command\r\n"},
		{bulk("GET", "a", "b"), "-ERR wrong number of arguments for 'get' command\r\n"},
		{bulk("set", "a"), "-ERR wrong number of arguments for 'set' command\r\n"},
	} {
		sendTo(t, c, x.input)
		expect(t, c, x.want)
	}
}

func TestAClientThatStopsSendingStillGetsItsReplies(t *testing.T) {
	c := dial(t, "tcp", startOstro(t, redis.Config{}))
	value := strings.Repeat("v", 1<<16)
	sendTo(t, c, bulk("SET", "k", value))
	expect(t, c, "+OK\r\n")
	const gets = 500 // more than the socket takes at once
	sendTo(t, c, strings.Repeat(bulk("GET", "k"), gets)+"*1\r\n$4\r\nPI")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := expectEnd(t, c); got != strings.Repeat("$65536\r\n"+value+"\r\n", gets) {
		t.Fatalf("got %d bytes", len(got))
	}
}

func TestManyConnectionsComeAndGo(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{})
	addr := srv.Addr().String()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 50 {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Error(err)
					return
				}
				sendTo(t, c, bulk("PING"))
				expect(t, c, "+PONG\r\n")
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	await.True(t, "all clients are gone", func() bool { return srv.Metrics().Clients == 0 })
	if m := srv.Metrics(); m.ConnectionsAccepted != 1000 || m.Commands != 1000 {
		t.Fatalf("%+v", m)
	}
}

func TestIdleConnectionsHoldNoBuffers(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{})
	partial := dial(t, "tcp", srv.Addr().String())
	for range 50 {
		c := dial(t, "tcp", srv.Addr().String())
		sendTo(t, c, bulk("SET", "k", strings.Repeat("x", 100_000)), bulk("GET", "k"))
		expect(t, c, "+OK\r\n$100000\r\n")
		expect(t, c, strings.Repeat("x", 100_000)+"\r\n")
	}
	sendTo(t, partial, bulk("PING"), "*1\r\n$4\r\nPI")
	expect(t, partial, "+PONG\r\n")
	await.True(t, "only the partial command is held", func() bool { return srv.HeldBuffers() == 1 })
}

func TestUnixSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ostro.sock")
	startServer(t, store.Options{}, redis.Config{Port: -1, UnixSocket: path})
	c := dial(t, "unix", path)
	sendTo(t, c, bulk("SET", "a", "b"), bulk("GET", "a"))
	expect(t, c, "+OK\r\n$1\r\nb\r\n")
}

func TestConnectionsKeepTheirOrderWhileTheyMoveBetweenLoops(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{Loops: 3})
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for i := range 12 {
		c := dial(t, "tcp", srv.Addr().String())
		clients.Go(func() {
			key := fmt.Sprint("counter", i)
			for n := 1; n < 2000; n += 4 {
				sendTo(t, c, strings.Repeat(bulk("INCR", key), 3)+bulk("GET", key), bulk("INCR", key))
				expect(t, c, fmt.Sprintf(":%d\r\n:%d\r\n:%d\r\n$%d\r\n%d\r\n:%d\r\n", n, n+1, n+2, len(fmt.Sprint(n+2)), n+2, n+3))
			}
		})
	}
	var mover sync.WaitGroup
	mover.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				srv.ShuffleConnections()
				srv.HeldBuffers() // waits for the loops, so that they can also serve
			}
		}
	})
	clients.Wait()
	close(stop)
	mover.Wait()
}

func TestAnyPortIsTheSameOnEveryAddress(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{Binds: []string{"127.0.0.1", "127.0.0.2"}})
	_, port, _ := net.SplitHostPort(srv.Addr().String())
	for _, host := range []string{"127.0.0.1", "127.0.0.2"} {
		c := dial(t, "tcp", net.JoinHostPort(host, port))
		sendTo(t, c, "PING\r\n")
		expect(t, c, "+PONG\r\n")
	}
	never, st := prepare(t, store.Options{}, redis.Config{Binds: []string{"127.0.0.1", "127.0.0.1"}})
	defer st.Close()
	if err := never.Start(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("one address twice: %v", err)
	}
}

// startServer is startOstroOn for tests that need the Server itself.
func startServer(t testing.TB, o store.Options, cfg redis.Config) *redis.Server {
	t.Helper()
	srv, st := launch(t, o, cfg)
	t.Cleanup(func() { stopServer(t, srv, st) })
	return srv
}

// launch is startServer for tests that stop it themselves.
func launch(t testing.TB, o store.Options, cfg redis.Config) (*redis.Server, *store.Store) {
	t.Helper()
	srv, st := prepare(t, o, cfg)
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	return srv, st
}

// prepare makes a server that does not listen yet: on any port, unless cfg says.
func prepare(t testing.TB, o store.Options, cfg redis.Config) (*redis.Server, *store.Store) {
	t.Helper()
	st, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return prepareOn(t, st, cfg), st
}

// prepareOn is prepare for a store that is there.
func prepareOn(t testing.TB, st *store.Store, cfg redis.Config) *redis.Server {
	t.Helper()
	if cfg.Port == 0 {
		cfg.Port = redis.PortAny
	}
	if cfg.Tenants == nil {
		cfg.Tenants = newTenants(t, st)
	}
	if cfg.Functions == nil {
		cfg.Functions = newFunctions(t, cfg.Tenants)
	}
	srv, err := redis.New(st, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

// startOn serves a store that is there until the test's end.
func startOn(t testing.TB, st *store.Store, cfg redis.Config) (addr string) {
	t.Helper()
	srv := prepareOn(t, st, cfg)
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopServer(t, srv, st) })
	return srv.Addr().String()
}

// newFunctions is a library in which nothing is installed.
func newFunctions(t testing.TB, tenants *tenant.Registry) *library.Library {
	t.Helper()
	book, err := library.OpenFiles("")
	if err != nil {
		t.Fatal(err)
	}
	l, err := library.Open(t.Context(), library.Options{
		Book: book, Changed: tenants.Changed,
		Gone: func(o library.Owner) bool { return tenants.Deleted(int(o)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// newTenants is a registry without tenants. Calls have more time than usual: what is tested here is what they do, on machines
// however slow.
func newTenants(t testing.TB, st *store.Store) *tenant.Registry {
	t.Helper()
	book, err := tenant.OpenFile("")
	if err != nil {
		t.Fatal(err)
	}
	r, err := tenant.Open(context.Background(), book, st, slog.New(slog.DiscardHandler), sched.Options{Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}
