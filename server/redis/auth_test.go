package redis_test

import (
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
	"github.com/ostrodb/ostro/tenant"
)

// converse sends commands and compares their replies, shown on one line each.
func converse(t *testing.T, c *rawClient, exchanges ...[2]string) {
	t.Helper()
	for _, e := range exchanges {
		args, err := splitWords(e[0])
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.do(args...)
		if err != nil {
			t.Fatalf("%s: %v", e[0], err)
		}
		if got := onOneLine(r.raw); got != e[1] {
			t.Errorf("%s\nanswers %s\nwant    %s", e[0], got, e[1])
		}
	}
}

func TestNothingIsToldWithoutThePassword(t *testing.T) {
	addr := startOstro(t, redis.Config{RequirePass: "secret"})
	c := dialRaw(t, addr)
	converse(t, c, [][2]string{
		{"GET a", "-NOAUTH Authentication required."},
		{"PING", "-NOAUTH Authentication required."},
		{"MULTI", "-NOAUTH Authentication required."},
		{"EXEC", "-EXECABORT Transaction discarded because of: NOAUTH Authentication required."},
		{"NOSUCH", "-ERR unknown command 'NOSUCH', with args beginning with: "},
		{"HELLO 3", "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"},
		{"AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH default wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH nobody secret", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH secret", "+OK"},
		{"PING", "+PONG"},
		{"AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"PING", "+PONG"},
		{"RESET", "+RESET"},
		{"PING", "-NOAUTH Authentication required."},
	}...)
	other := dialRaw(t, addr)
	if r, err := other.do("hello", "3", "auth", "default", "secret"); err != nil || r.kind != '%' {
		t.Errorf("HELLO with the password: %v, %v", r, err)
	}
}

func TestPasswordsThatAreTooLongAreNeitherSetNorHashed(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna")
	longest := strings.Repeat("x", tenant.MaxPasswordBytes)
	const refused = "ERR a password has at most 1024 bytes, and this one 1025"
	says(t, operator, refused, "tenant", "create", "bert", "password", longest+"x")
	says(t, operator, refused, "tenant", "set", "anna", "password", longest+"x")
	says(t, operator, "ERR CONFIG SET failed (possibly related to argument 'requirepass') - a password has at most 1024 bytes", "config", "set", "requirepass", longest+"x")
	says(t, operator, "OK", "tenant", "set", "anna", "password", longest)
	says(t, operator, "OK", "config", "set", "requirepass", longest)
	for _, user := range []string{"anna", tenant.Operator} {
		c := dialRaw(t, addr)
		says(t, c, "WRONGPASS", "auth", user, longest+"x")
		says(t, c, "WRONGPASS", "hello", "3", "auth", user, longest+"x")
		says(t, c, "OK", "auth", user, longest)
		says(t, c, "WRONGPASS", "auth", user, strings.Repeat("x", 1<<20))
	}
	if _, err := redis.New(nil, redis.Config{RequirePass: longest + "x"}); err == nil || !strings.Contains(err.Error(), "requirepass") {
		t.Errorf("a server whose password is too long: %v", err)
	}
}

func TestAPasswordSetWhileRunningHoldsForNewClients(t *testing.T) {
	addr := startOstro(t, redis.Config{})
	old := dialRaw(t, addr)
	converse(t, old, [][2]string{
		{"PING", "+PONG"},
		{"CONFIG SET requirepass secret", "+OK"},
		{"PING", "+PONG"},
	}...)
	converse(t, dialRaw(t, addr), [][2]string{
		{"PING", "-NOAUTH Authentication required."},
		{"AUTH default secret", "+OK"},
		{"CONFIG SET requirepass \"\"", "+OK"},
	}...)
	converse(t, dialRaw(t, addr), [2]string{"PING", "+PONG"})
}
