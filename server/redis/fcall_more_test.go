package redis_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
)

func TestFunctionsWorkOnMoreThanMemoryHolds(t *testing.T) {
	addr := startWithFunctions(t, tightMemory(t, store.EverySec), redis.Config{Loops: 2})
	c := dialRaw(t, addr)
	const n = 3000
	value := func(i int) string { return fmt.Sprint(i, strings.Repeat(".", 1000)) }
	name := func(i int) string { return "key" + strconv.Itoa(i) }
	for i := range n {
		mustDo(t, c, "SET", name(i), value(i))
		if i%10 == 0 {
			mustDo(t, c, "SET", name(i)+"large", strings.Repeat(strconv.Itoa(i%10), 30_000))
		}
	}
	for i := 0; i < n; i += 7 {
		if r := mustDo(t, c, "FCALL", "look", "1", name(i)); r.text != value(i) {
			t.Fatalf("%s: %.60q", name(i), r.raw)
		}
	}
	for i := 0; i < n; i += 50 {
		if r := mustDo(t, c, "FCALL", "look", "1", name(i)+"large"); r.text != strings.Repeat(strconv.Itoa(i%10), 30_000) {
			t.Fatalf("%slarge: %d bytes", name(i), len(r.text))
		}
	}
	// Counters that are cold when they are read, or by the time that they are written.
	for i := range 300 {
		mustDo(t, c, "FCALL", "count", "1", "n"+strconv.Itoa(i), shortWork)
	}
	for i := range n {
		mustDo(t, c, "SET", name(i), value(i))
	}
	for i := range 300 {
		if r := mustDo(t, c, "FCALL", "count", "1", "n"+strconv.Itoa(i), []string{shortWork, longWork}[i%2]); counter(t, r) != 2 {
			t.Fatalf("n%d: %q", i, r.raw)
		}
	}
	keys := []string{"FCALL", "total", "200"}
	for i := range 200 {
		keys = append(keys, "n"+strconv.Itoa(i))
	}
	if r := mustDo(t, c, keys...); counter(t, r) != 400 {
		t.Fatalf("%q", r.raw)
	}
	if r := mustDo(t, c, "FCALL_RO", "list", "0", "n", "4000"); len(strings.Fields(r.text)) != 300 {
		t.Fatalf("%d keys: %.100q", len(strings.Fields(r.text)), r.raw)
	}
	if reads := coldReads(t, addr); reads < 100 {
		t.Errorf("only %d records came from disk: the test did not test it", reads)
	}
}

func TestTenantsCallTheirOwnFunctionsOnTheirOwnData(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna databases 2", "bert password bert", "full password full bytes 1")
	loadCalls(t, operator)
	anna, bert := as(t, addr, "anna"), as(t, addr, "bert")
	says(t, operator, "OK", "set", "k", "op")
	says(t, anna, "ERR Function not found", "fcall", "look", "1", "k")
	loadCalls(t, anna)
	says(t, bert, "ERR Function not found", "fcall", "look", "1", "k")
	loadCalls(t, bert)
	says(t, anna, "", "fcall", "put", "1", "k", "annas")
	says(t, anna, "", "fcall", "put", "1", "k", "second", "1")
	says(t, anna, "ERR function put: returned error code 5", "fcall", "put", "1", "k", "third", "2")
	says(t, bert, "ERR function look: returned error code 1", "fcall", "look", "1", "k")
	says(t, operator, "op", "fcall", "look", "1", "k")
	says(t, anna, "annas", "fcall", "look", "1", "k")
	says(t, anna, "second", "fcall", "peek", "1", "k", "1")
	for n := 2; n < 1<<20; n = n*3 + 1 {
		says(t, anna, "ERR function peek: returned error code 5", "fcall", "peek", "1", "k", strconv.Itoa(n))
	}
	says(t, bert, "", "fcall_ro", "list", "0", "", "1000")
	says(t, anna, "k ", "fcall_ro", "list", "0", "", "1000")
	code, err := os.ReadFile("../call/testdata/calls.wasm")
	if err != nil {
		t.Fatal(err)
	}
	full := as(t, addr, "full")
	says(t, full, "calls", "function", "load", "#!wasm name=calls\n"+string(code))
	says(t, full, "", "fcall", "put", "1", "k", "v")
	says(t, full, "QUOTA function put: ", "fcall", "put", "1", "other", "v")
	says(t, full, "v", "fcall", "look", "1", "k")
}

func TestGoRedisCallsFunctions(t *testing.T) {
	addr := startWithFunctions(t, store.Options{}, redis.Config{})
	c := goredis.NewClient(&goredis.Options{Addr: addr, ReadTimeout: patience})
	defer c.Close()
	ctx := context.Background()
	if err := c.FCall(ctx, "put", []string{"k"}, "value").Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := c.FCallRO(ctx, "look", []string{"k"}).Text(); err != nil || got != "value" {
		t.Fatalf("%q %v", got, err)
	}
	if err := c.FCallRO(ctx, "put", []string{"k"}, "other").Err(); err == nil {
		t.Fatal("a call that may not write has written")
	}
}

// Calls in a pipeline have their keys looked at ahead. What comes between them counts all the same.
func TestCallsInAPipelineSeeWhatIsBetweenThem(t *testing.T) {
	c := dialRaw(t, startWithFunctions(t, store.Options{}, redis.Config{}))
	absent := "-ERR function look: returned error code 1\r\n"
	look := []string{"FCALL", "look", "1", "a"}
	steps := []struct {
		args []string
		want string
	}{
		{[]string{"FCALL", "put", "1", "a", "one"}, "$0\r\n\r\n"},
		{look, "$3\r\none\r\n"},
		{[]string{"SET", "a", "two"}, "+OK\r\n"},
		{look, "$3\r\ntwo\r\n"},
		{[]string{"GET", "a"}, "$3\r\ntwo\r\n"},
		{[]string{"FCALL", "none", "1", "a"}, "-ERR Function not found\r\n"},
		{[]string{"FCALL", "look", "", "a"}, "-ERR Bad number of keys provided\r\n"},
		{[]string{"FCALL", "peek", "1", "a", "0"}, "$3\r\ntwo\r\n"},
		{[]string{"SELECT", "3"}, "+OK\r\n"},
		{look, absent},
		{[]string{"FCALL", "put", "1", "a", "three"}, "$0\r\n\r\n"},
		{look, "$5\r\nthree\r\n"},
		{[]string{"FLUSHDB"}, "+OK\r\n"},
		{look, absent},
		{[]string{"SELECT", "0"}, "+OK\r\n"},
		{look, "$3\r\ntwo\r\n"},
		{[]string{"FLUSHALL"}, "+OK\r\n"},
		{look, absent},
		{[]string{"FCALL", "put", "1", "a", "four"}, "$0\r\n\r\n"},
		{[]string{"FCALL_RO", "look", "1", "a"}, "$4\r\nfour\r\n"},
	}
	var commands [][]string
	for _, s := range steps {
		commands = append(commands, s.args)
	}
	for range 20 { // At first calls go to the scheduler, later they run where they are.
		must(t, c.sendAll(commands))
		for _, s := range steps {
			r, err := c.receive()
			must(t, err)
			if r.raw != s.want {
				t.Fatalf("%v: %q, want %q", s.args, r.raw, s.want)
			}
		}
	}
}
