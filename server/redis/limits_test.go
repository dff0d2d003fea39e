package redis_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
)

func TestTooManyClientsAreTurnedAway(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{MaxClients: 2})
	addr := srv.Addr().String()
	a, b := dial(t, "tcp", addr), dial(t, "tcp", addr)
	sendTo(t, a, bulk("PING"))
	expect(t, a, "+PONG\r\n")
	sendTo(t, b, bulk("PING"))
	expect(t, b, "+PONG\r\n")
	if got := expectEnd(t, dial(t, "tcp", addr)); got != "-ERR max number of clients reached\r\n" {
		t.Fatalf("got %q", got)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "a client has left", func() bool { return srv.Metrics().Clients == 1 })
	c := dial(t, "tcp", addr)
	sendTo(t, c, bulk("PING"))
	expect(t, c, "+PONG\r\n")
}

func TestStrangersNeedAPassword(t *testing.T) {
	c := dial(t, "tcp", startOstro(t, redis.Config{RequirePass: "secret"}))
	for _, x := range []struct{ input, want string }{
		{bulk("GET", "a"), "-NOAUTH Authentication required.\r\n"},
		{bulk("PING"), "-NOAUTH Authentication required.\r\n"},
		{bulk("nosuch"), "-ERR unknown command 'nosuch', with args beginning with: \r\n"},
		{bulk("AUTH", "secret"), "+OK\r\n"},
		{bulk("GET", "a"), "$-1\r\n"},
		{bulk("ECHO", strings.Repeat("a", 20000)), "$20000\r\n" + strings.Repeat("a", 20000) + "\r\n"},
	} {
		sendTo(t, c, x.input)
		expect(t, c, x.want)
	}
}

func TestStrangersMayNotSendMuch(t *testing.T) {
	addr := startOstro(t, redis.Config{RequirePass: "secret"})
	for input, want := range map[string]string{
		"*11\r\n":              "-ERR Protocol error: unauthenticated multibulk length\r\n",
		"*2\r\n$20000\r\n":     "-ERR Protocol error: unauthenticated bulk length\r\n",
		"*1\r\n$4\r\nQUIT\r\n": "+OK\r\n",
	} {
		c := dial(t, "tcp", addr)
		sendTo(t, c, input)
		if got := expectEnd(t, c); got != want {
			t.Errorf("%q: got %q, want %q", input, got, want)
		}
	}
}

func TestProtectedModeLetsOnlyLocalClientsIn(t *testing.T) {
	open := startServer(t, store.Options{}, redis.Config{})
	if got := open.WelcomeStranger(false); !strings.HasPrefix(got, "-DENIED Redis is running in protected mode because") || !strings.HasSuffix(got, "\r\n") {
		t.Errorf("a stranger gets %q", got)
	}
	if got := open.WelcomeStranger(true); got != "" {
		t.Errorf("a local client gets %q", got)
	}
	off := startServer(t, store.Options{}, redis.Config{ProtectedMode: redis.ProtectedOff})
	if got := off.WelcomeStranger(false); got != "" {
		t.Errorf("with protected mode off a stranger gets %q", got)
	}
	password := startServer(t, store.Options{}, redis.Config{RequirePass: "secret"})
	if got := password.WelcomeStranger(false); got != "" {
		t.Errorf("with a password a stranger gets %q", got)
	}
}

func TestAClientThatDoesNotReadIsClosedAtTheHardLimit(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{OutputLimit: redis.OutputLimit{HardBytes: 1 << 20}})
	c := dial(t, "tcp", srv.Addr().String())
	sendTo(t, c, bulk("SET", "k", strings.Repeat("x", 1<<20)))
	expect(t, c, "+OK\r\n")
	sendTo(t, c, strings.Repeat(bulk("GET", "k"), 100))
	await.True(t, "the client is closed", func() bool { return srv.Metrics().OutputLimitClosed == 1 })
	await.True(t, "it is forgotten", func() bool { return srv.Metrics().Clients == 0 })
}

func TestAClientThatDoesNotReadIsClosedSomeTimeAfterTheSoftLimit(t *testing.T) {
	limit := redis.OutputLimit{SoftBytes: 1 << 20, SoftTime: time.Nanosecond}
	srv := startServer(t, store.Options{}, redis.Config{OutputLimit: limit})
	c := dial(t, "tcp", srv.Addr().String())
	sendTo(t, c, bulk("SET", "k", strings.Repeat("x", 1<<20)))
	expect(t, c, "+OK\r\n")
	sendTo(t, c, strings.Repeat(bulk("GET", "k"), 50))
	await.True(t, "the client is closed", func() bool { return srv.Metrics().OutputLimitClosed == 1 })
}

func TestAClientThatSendsTooMuchIsClosed(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{MaxQueryBytes: 1 << 20})
	c := dial(t, "tcp", srv.Addr().String())
	_, _ = c.Write([]byte("*2\r\n$4\r\nECHO\r\n$4000000\r\n" + strings.Repeat("x", 3_000_000))) // It may fail half way.
	expectEnd(t, c)
	if m := srv.Metrics(); m.QueryLimitClosed != 1 {
		t.Fatalf("%+v", m)
	}
}

func TestIdleClientsAreClosed(t *testing.T) {
	addr := startOstro(t, redis.Config{Timeout: time.Second})
	for got := ""; got != "+PONG\r\n"; { // On a busy machine a client may be idle before it has sent its PING.
		c := dial(t, "tcp", addr)
		_, _ = io.WriteString(c, bulk("PING"))
		if got = expectEnd(t, c); got != "" && got != "+PONG\r\n" {
			t.Fatalf("got %q", got)
		}
	}
}

func TestConfigSaysWhatIsWrong(t *testing.T) {
	for _, cfg := range []redis.Config{
		{Port: 70000},
		{Databases: -1},
		{Loops: -1},
		{TLS: redis.TLSConfig{Port: 1}},
		{TLS: redis.TLSConfig{Port: 1, CertFile: "none", KeyFile: "none"}},
	} {
		if _, err := redis.New(nil, cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}
