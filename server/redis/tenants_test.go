package redis_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
	"github.com/ostrodb/ostro/tenant"
)

const operatorPassword = "op-secret"

// as is a client that has shown a tenant's password, which is its name.
func as(t testing.TB, addr, name string) *rawClient {
	t.Helper()
	c := dialRaw(t, addr)
	password := name
	if name == tenant.Operator {
		password = operatorPassword
	}
	says(t, c, "OK", "auth", name, password)
	return c
}

// says sends a command that answers with a text.
func says(t testing.TB, c *rawClient, want string, args ...string) {
	t.Helper()
	r, err := c.do(args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	if got := strings.TrimRight(strings.TrimLeft(r.raw, "+$-:0123456789\r\n"), "\r\n"); !strings.HasPrefix(got, want) || want == "" && got != "" {
		t.Fatalf("%q answers %q, want %q", args, r.raw, want)
	}
}

func startWithTenants(t testing.TB, o store.Options, tenants ...string) (addr string, operator *rawClient) {
	t.Helper()
	addr = startOstroOn(t, o, redis.Config{RequirePass: operatorPassword})
	operator = as(t, addr, tenant.Operator)
	for _, line := range tenants {
		says(t, operator, "OK", strings.Fields("tenant create "+line)...)
	}
	return addr, operator
}

func TestTenantsHaveDatabasesOfTheirOwn(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna databases 2", "bert password bert")
	anna, bert := as(t, addr, "anna"), as(t, addr, "bert")
	for c, value := range map[*rawClient]string{operator: "op", anna: "a", bert: "b"} {
		says(t, c, "OK", "set", "k", value)
	}
	for c, value := range map[*rawClient]string{operator: "op", anna: "a", bert: "b"} {
		says(t, c, value, "get", "k")
		says(t, c, "", "dbsize")
	}
	converse(t, anna, [][2]string{
		{"SELECT 1", "+OK"},
		{"GET k", "$-1"},
		{"SET k second", "+OK"},
		{"SELECT 2", "-ERR DB index is out of range"},
		{"SELECT 65536", "-ERR DB index is out of range"},
		{"SWAPDB 0 1", "+OK"},
		{"GET k", "$1 a"},
		{"MOVE k 0", ":0"},
		{"COPY k other DB 0", ":1"},
		{"COPY k other DB 5", "-ERR DB index is out of range"},
		{"FLUSHALL", "+OK"},
		{"SELECT 0", "+OK"},
		{"DBSIZE", ":0"},
	}...)
	says(t, bert, "b", "get", "k")
	says(t, operator, "op", "get", "k")
	says(t, operator, "OK", "flushall")
	says(t, bert, "b", "get", "k")
	converse(t, bert, [2]string{"SELECT 1", "-ERR DB index is out of range"})
}

func TestATransactionDoesNotOutliveTheTenantThatBeganIt(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna", "bert password bert")
	says(t, operator, "OK", "set", "k", "op")
	c := as(t, addr, "anna")
	converse(t, c, [][2]string{
		{"WATCH k", "+OK"},
		{"MULTI", "+OK"},
		{"SET k anna", "+QUEUED"},
		{"AUTH bert bert", "+QUEUED"},
		{"EXEC", "*2 +OK -ERR Command not allowed inside a transaction"},
		{"GET k", "$4 anna"},
		{"AUTH bert bert", "+OK"},
		{"GET k", "$-1"},
		{"RESET", "+RESET"},
		{"GET k", "-NOAUTH Authentication required."},
	}...)
}

func TestNoCommandCrossesTheWall(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna databases 2", "mallory password mallory databases 2")
	w := wall{databases: 2, owners: map[string]*rawClient{"anna": as(t, addr, "anna"), "operator": operator}}
	w.build(t)
	w.attack(t, 60, as(t, addr, "mallory"))
	w.stands(t)
}

// wall is what an attacker must not get through: others' data.
type wall struct {
	databases int
	owners    map[string]*rawClient
}

// build gives everybody keys of the same names and keys of their own, and a name to their connection.
func (w *wall) build(t testing.TB) {
	t.Helper()
	for whose, c := range w.owners {
		says(t, c, "OK", "client", "setname", "SECRET-"+whose)
		for db := range w.databases {
			says(t, c, "OK", "select", fmt.Sprint(db))
			for n := range 20 {
				says(t, c, "OK", "set", fmt.Sprint("k", n), fmt.Sprintf("SECRET-%s-%d", whose, n))
				says(t, c, "OK", "set", fmt.Sprintf("SECRETKEY-%s-%d", whose, n), "v")
			}
		}
	}
}

// attack runs every command with all kinds of arguments, others' keys and databases among them.
func (w *wall) attack(t testing.TB, rounds int, clients ...*rawClient) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range rounds {
		for _, name := range redis.CommandNames() {
			args := strings.Split(name, "|")
			for n := r.IntN(6); n > 0; n-- {
				args = append(args, redis.OddWords[r.IntN(len(redis.OddWords))])
			}
			switch name {
			case "auth", "hello", "reset", "quit", "client|reply":
				continue // They end the game, or the answers.
			}
			reply, err := clients[r.IntN(len(clients))].do(args...)
			if err != nil {
				t.Fatalf("%q: %v", args, err)
			}
			if strings.Contains(reply.raw, "SECRET") {
				t.Fatalf("%q shows another's data: %q", args, reply.raw)
			}
		}
	}
}

// stands checks that everybody has what they had.
func (w *wall) stands(t testing.TB) {
	t.Helper()
	for whose, c := range w.owners {
		for db := range w.databases {
			says(t, c, "OK", "select", fmt.Sprint(db))
			r, err := c.do("dbsize")
			if err != nil || r.raw != ":40\r\n" {
				t.Errorf("%s has %q keys, want 40 (%v)", whose, r.raw, err)
			}
			for n := range 20 {
				says(t, c, fmt.Sprintf("SECRET-%s-%d", whose, n), "get", fmt.Sprint("k", n))
			}
		}
	}
}

func TestWhatIsTheOperatorsIsNoTenants(t *testing.T) {
	addr, _ := startWithTenants(t, store.Options{}, "anna password anna")
	c := as(t, addr, "anna")
	for _, line := range []string{
		"config get *", "config set requirepass x", "client list", "client kill type normal", "slowlog get", "shutdown", "save", "bgsave",
		"tenant list", "tenant create x password x", "tenant delete anna", "tenant set anna operations 0", "memory stats", "migrate h 1 k 0 1",
		"latency latest", "replicaof no one", "cluster setslot 1 stable",
	} {
		says(t, c, "NOPERM", strings.Fields(line)...)
	}
	says(t, c, "OK", "set", "k", strings.Repeat("x", 1000))
	if r, err := c.do("info"); err != nil || !regexp.MustCompile(`used_bytes:1\d\d\d\r\n(.*\r\n)*used_connections:1\r\n`).MatchString(r.raw) {
		t.Errorf("INFO does not tell a tenant what it uses: %q (%v)", r.raw, err)
	}
	r, err := c.do("info", "everything")
	if err != nil || !strings.Contains(r.raw, "redis_version:") || strings.Contains(r.raw, "memory_bytes") {
		t.Errorf("INFO tells a tenant %q (%v)", r.raw, err)
	}
}

func TestWhoIsOverItsLimitIsToldAndOthersAreNot(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna operations 5 bytes 2000 connections 2", "bert password bert")
	anna, bert := as(t, addr, "anna"), as(t, addr, "bert")
	began, granted := time.Now(), 0
	for refused := 0; refused < 40; {
		r, err := anna.do("ping")
		if err != nil {
			t.Fatal(err)
		}
		over := b2i(strings.HasPrefix(r.raw, "-QUOTA tenant anna has reached its limit of 5 operations a second"))
		refused, granted = refused+over, granted+1-over
		says(t, bert, "PONG", "ping")
		if took := time.Since(began); float64(granted) > 5+5*took.Seconds() {
			t.Fatalf("%d commands were executed within %v", granted, took)
		}
	}
	says(t, operator, "OK", "tenant", "set", "anna", "operations", "0")
	says(t, anna, "OK", "set", "k", strings.Repeat("x", 1900))
	says(t, anna, "OK", "set", "l", strings.Repeat("x", 1900))
	says(t, anna, "QUOTA tenant anna has reached its limit of 2000 bytes", "set", "m", "x")
	says(t, anna, strings.Repeat("x", 1900), "get", "k")
	says(t, anna, "", "del", "k", "l")
	says(t, anna, "OK", "set", "m", "x")
	as(t, addr, "anna")
	third := dialRaw(t, addr)
	says(t, third, "QUOTA tenant anna has reached its limit of 2 connections: close one", "auth", "anna", "anna")
	says(t, third, "NOAUTH", "ping")
}

func TestADeletedTenantIsCutOff(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna")
	anna := as(t, addr, "anna")
	says(t, anna, "OK", "set", "k", "v")
	says(t, operator, "OK", "tenant", "delete", "anna")
	says(t, anna, "NOAUTH the tenant was deleted", "get", "k")
	if _, err := anna.do("get", "k"); err == nil {
		t.Error("its connection goes on")
	}
	says(t, dialRaw(t, addr), "WRONGPASS", "auth", "anna", "anna")
	says(t, operator, "OK", "tenant", "create", "anna", "password", "anna")
	says(t, as(t, addr, "anna"), "", "get", "k")
}

func TestTheOperatorSeesWhatTenantsUse(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna", "bert password bert operations 7")
	anna := as(t, addr, "anna")
	for range 10 {
		says(t, anna, "OK", "set", "k", "v")
	}
	var all []tenant.Usage
	await.True(t, "anna's account has her commands", func() bool {
		r, err := operator.do("tenant", "list")
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(r.raw, "\r\n")
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatal(err)
		}
		return all[0].Operations == 10
	})
	names := []string{}
	for _, u := range all {
		names = append(names, u.Name)
	}
	if u := all[0]; !slices.Equal(names, []string{"anna", "bert"}) || u.Keys != 1 || u.Connections != 1 || u.BytesIn == 0 || all[1].Limits.Operations != 7 {
		t.Errorf("%+v", all)
	}
}

func TestWithoutAPasswordOfTheOperatorThereAreNoTenants(t *testing.T) {
	c := dialRaw(t, startOstro(t, redis.Config{}))
	says(t, c, "ERR set requirepass first", "tenant", "create", "anna", "password", "anna")
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
