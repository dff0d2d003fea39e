package redis_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/tenant"
)

// usageOf is a tenant's account, as the operator sees it.
func usageOf(t testing.TB, operator *rawClient, name string) (u tenant.Usage) {
	t.Helper()
	r, err := operator.do("tenant", "list")
	if err != nil {
		t.Fatal(err)
	}
	var all []tenant.Usage
	if err := json.Unmarshal([]byte(r.text), &all); err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		if u.Name == name {
			return u
		}
	}
	t.Fatalf("there is no tenant %s", name)
	return u
}

// awaitOperations waits until an account has so many operations, which is when a round has ended.
func awaitOperations(t *testing.T, operator *rawClient, name, after string, want int64) {
	t.Helper()
	var got int64
	await.True(t, "the account tells of "+after, func() bool {
		got = usageOf(t, operator, name).Operations
		return got >= want
	})
	if got != want {
		t.Errorf("after %s the account has %d operations, want %d", after, got, want)
	}
}

func TestACommandIsAsManyOperationsAsItHasKeys(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna")
	anna, total := as(t, addr, "anna"), int64(0)
	for _, s := range []struct {
		line string
		cost int64
	}{
		{"ping", 1},
		{"get a", 1},
		{"mset a 1 b 2 c 3", 3},
		{"mget a b c d e", 5},
		{"exists a a a", 3},
		{"del a b", 2},
		{"unlink a b c", 3},
		{"touch a b", 2},
		{"msetnx a 1 b 2", 2},
		{"rename a d", 2},
		{"bitop or x a b c", 4},
		{"watch a b c", 3},
		{"multi", 1},
		{"mget a b", 2},
		{"exec", 1},
		{"mget", 1},
		{"dbsize", 1},
		{"object encoding a", 1},
		{"scan 0", 2}, // and one for a thousand buckets that it looks at
		{"keys *", 2},
		{"auth anna anna", 1},
		{"auth anna wrong", 1},
		{"hello 3", 1},
		{"hello 2 auth anna anna", 1},
	} {
		if _, err := anna.do(strings.Fields(s.line)...); err != nil {
			t.Fatal(err)
		}
		total += s.cost
		awaitOperations(t, operator, "anna", s.line, total)
	}
}

func TestLoggingInAgainIsWithinTheLimitOfOperations(t *testing.T) {
	addr, _ := startWithTenants(t, store.Options{}, "anna password anna operations 500", "bert password bert")
	anna := as(t, addr, "anna")
	says(t, anna, "OK", "auth", "anna", "anna")
	commands := [][]string{append([]string{"exists"}, make([]string, 500)...)} // It owes all of a second.
	for _, line := range []string{"auth anna anna", "auth bert bert", "hello 3", "hello 3 auth anna anna", "reset"} {
		commands = append(commands, strings.Fields(line))
	}
	for i, r := range converseAll(t, anna, commands)[1:] {
		if !strings.HasPrefix(r, "-QUOTA tenant anna has reached its limit of 500 operations a second") {
			t.Errorf("%q answers %q", commands[i+1], r)
		}
	}
	says(t, anna, "OK", "quit")
	says(t, dialRaw(t, addr), "OK", "auth", "anna", "anna") // Nobody is charged before the login.
}

func TestManyKeysAtOnceAreOwedAndTooManyRefused(t *testing.T) {
	addr, _ := startWithTenants(t, store.Options{}, "anna password anna operations 500", "bert password bert")
	anna, bert := as(t, addr, "anna"), as(t, addr, "bert")
	many := func(n int) []string {
		args := []string{"exists"}
		for i := range n {
			args = append(args, fmt.Sprint("k", i))
		}
		return args
	}
	says(t, anna, "QUOTA tenant anna has a limit of 500 operations a second, and 501 keys at once are as many operations: use fewer at a time", many(501)...)
	got := converseAll(t, anna, [][]string{many(500), {"ping"}}) // at once: within a second all is paid
	if got[0] != ":0\r\n" || !strings.HasPrefix(got[1], "-QUOTA tenant anna has reached its limit of 500 operations a second") {
		t.Errorf("500 keys and then another command are answered %q", got)
	}
	says(t, bert, "", many(5000)...)
}

// Commands behind one that waits are parsed again. Their tenant pays once.
func TestCommandsThatWaitArePaidForOnce(t *testing.T) {
	addr, operator := startWithTenants(t, tightMemory(t, store.EverySec), "anna password anna")
	anna := as(t, addr, "anna")
	const keys = 300
	var gets [][]string
	for i := range keys {
		says(t, anna, "OK", "set", fmt.Sprint("k", i), strings.Repeat("x", 10_000))
	}
	for i := range keys {
		gets = append(gets, []string{"get", fmt.Sprint("k", i)}, []string{"mget", fmt.Sprint("k", i), fmt.Sprint("k", keys-i-1)})
	}
	if err := anna.sendAll(gets); err != nil {
		t.Fatal(err)
	}
	for range gets {
		if r, err := anna.receive(); err != nil || r.kind == '-' {
			t.Fatal(r, err)
		}
	}
	if n := coldReadsBy(t, operator); n < 100 {
		t.Errorf("only %d records came from disk: the test did not test it", n)
	}
	awaitOperations(t, operator, "anna", "all that", keys+3*keys)
}

// Who may not wait for the disk is told, and the next command of the same name begins anew.
func TestWhoMayNotWaitBeginsAnew(t *testing.T) {
	addr, operator := startWithTenants(t, tightMemory(t, store.EverySec), "anna password anna inflight 1")
	anna, other := as(t, addr, "anna"), as(t, addr, "anna")
	for i := range 300 {
		says(t, anna, "OK", "set", fmt.Sprint("k", i), strings.Repeat("x", 10_000))
	}
	refused := 0
	for i := 0; refused < 20; i++ {
		if err := other.send("keys", "*"); err != nil {
			t.Fatal(err)
		}
		r, err := anna.do("keys", "*")
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasPrefix(r.raw, "-QUOTA tenant anna has reached its limit of 1 operations that wait"):
			refused++
		case len(r.items) != 300:
			t.Fatalf("%d keys, %.100q", len(r.items), r.raw)
		}
		if r, err := other.receive(); err != nil || r.kind != '-' && len(r.items) != 300 {
			t.Fatalf("%d keys, %v", len(r.items), err)
		} else if r.kind == '-' {
			refused++
		}
		says(t, operator, "PONG", "ping")
	}
}

func TestWhatOneCommandOfATenantTakesIsBounded(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna")
	anna := as(t, addr, "anna")
	largest := strings.Repeat("x", tenant.MaxValueBytes)
	says(t, anna, "ERR string exceeds maximum allowed size of a tenant's strings", "set", "k", largest+"x")
	says(t, operator, "OK", "set", "k", largest+"x")
	for i := range 3 {
		says(t, anna, "OK", "set", fmt.Sprint("k", i), largest)
	}
	says(t, anna, "ERR string exceeds maximum allowed size", "append", "k0", "x")
	says(t, anna, "ERR string exceeds maximum allowed size", "setrange", "new", fmt.Sprint(tenant.MaxValueBytes), "x")
	says(t, anna, "ERR bit offset", "setbit", "new", fmt.Sprint(8*tenant.MaxValueBytes), "1")
	says(t, anna, "ERR the values do not fit one reply", "mget", "k0", "k1", "k2")
	says(t, anna, "ERR the strings are too many or too long", "bitop", "or", "all", "k0", "k1", "k2")
	says(t, anna, "ERR Insufficient memory", "lcs", "k0", "k1")
	for _, args := range [][]string{{"multi"}, {"get", "k0"}, {"get", "k1"}, {"get", "k2"}, {"set", "small", "v"}} {
		if r, err := anna.do(args...); err != nil || r.kind == '-' {
			t.Fatal(r, err)
		}
	}
	r, err := anna.do("exec")
	if err != nil || len(r.items) != 4 || len(r.items[0].text) != len(largest) || r.items[2].kind != '-' || r.items[3].text != "OK" {
		t.Errorf("a transaction with a long answer: %d replies, %v", len(r.items), err)
	}
	says(t, anna, "OK", "multi")
	for range 3 {
		says(t, anna, "QUEUED", "set", "k", largest)
	}
	says(t, anna, "ERR the transaction of a tenant is longer than 64 MiB", "set", "k", largest)
	says(t, anna, "EXECABORT", "exec")
	watch := []string{"watch"}
	for i := range 10_001 {
		watch = append(watch, fmt.Sprint("w", i))
	}
	says(t, anna, "ERR a tenant watches at most", watch...)
	says(t, operator, "OK", watch...)
	many := []string{"mset"}
	for i := range tenant.MaxKeys + 1 {
		many = append(many, fmt.Sprint("m", i), "v")
	}
	says(t, anna, "OK", many[:1+2*tenant.MaxKeys]...)
	says(t, anna, "ERR a tenant's command that is one step has at most 4096 keys: divide it", many...)
	says(t, operator, "OK", many...)
	says(t, anna, "OK", "multi")
	says(t, anna, "QUEUED", many[:1+2*tenant.MaxKeys]...)
	says(t, anna, "ERR the transaction of a tenant has at most 4096 keys", "ping")
	says(t, anna, "EXECABORT", "exec")
	converse(t, anna, [][2]string{{"MULTI", "+OK"}, {"PING", "+QUEUED"}, {"EXEC", "*1 +PONG"}}...)
	short := strings.Repeat("ab", 1000)
	says(t, anna, "OK", "mset", "a", short, "b", short)
	says(t, anna, short, "lcs", "a", "b")
	converse(t, anna, [][2]string{
		{"LCS a b LEN", ":2000"},
		{"MULTI", "+OK"},
		{"LCS a b LEN", "+QUEUED"},
		{"EXEC", "*1 -ERR LCS of strings that long takes its time, and is not possible inside a tenant's transaction: send it by itself"},
	}...)
}
