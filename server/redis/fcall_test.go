package redis_test

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/call"
	"github.com/ostrodb/ostro/server/redis"
)

// startWithFunctions serves a store whose operator has installed the functions for tests.
func startWithFunctions(t testing.TB, o store.Options, cfg redis.Config) (addr string) {
	t.Helper()
	addr = startOstroOn(t, o, cfg)
	loadCalls(t, dialRaw(t, addr))
	return addr
}

// loadCalls installs the functions for tests.
func loadCalls(t testing.TB, c *rawClient) {
	t.Helper()
	code, err := os.ReadFile("../call/testdata/calls.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if r := mustDo(t, c, "FUNCTION", "LOAD", "#!wasm name=calls\n"+string(code)); r.text != "calls" {
		t.Fatalf("FUNCTION LOAD: %s", r.raw)
	}
}

func mustDo(t testing.TB, c *rawClient, args ...string) *reply {
	t.Helper()
	r, err := c.do(args...)
	if err != nil {
		t.Fatalf("%s: %v", args[0], err)
	}
	return r
}

func counter(t testing.TB, r *reply) uint64 {
	t.Helper()
	if r.kind != '$' || len(r.text) != 8 {
		t.Fatalf("no counter: %q", r.raw)
	}
	return binary.LittleEndian.Uint64([]byte(r.text))
}

// Others of the loop have their turn after a slice, however many calls a connection has sent.
func TestAPipelineOfCallsGoesOnInSlices(t *testing.T) {
	srv := startWithCalls(t)
	rounds := watchCalls(srv)
	pipelineCalls(t, srv, 1)
	for _, fuel := range rounds() {
		if fuel > call.SliceFuel*11/10 {
			t.Errorf("calls of one round used %d of fuel, and a slice is %d", fuel, call.SliceFuel)
		}
	}
}

// So they have if many do.
func TestPipelinesOfCallsShareASlice(t *testing.T) {
	const clients = 8
	srv := startWithCalls(t)
	rounds := watchCalls(srv)
	pipelineCalls(t, srv, clients)
	long, all := 0, rounds()
	for _, fuel := range all {
		if fuel > call.SliceFuel*3/2 {
			long++
		}
	}
	if long > clients { // Each may come in a round that has not counted it.
		t.Errorf("%d of %d rounds used more than a slice and a half", long, len(all))
	}
}

func startWithCalls(t *testing.T) *redis.Server {
	t.Helper()
	srv := startServer(t, store.Options{}, redis.Config{Loops: 1})
	c := dialRaw(t, srv.Addr().String())
	loadCalls(t, c)
	mustDo(t, c, "SET", "a", "apple")
	for range 20 { // At first calls go to the scheduler, later they run where they are.
		mustDo(t, c, "FCALL", "look", "1", "a")
	}
	return srv
}

// pipelineCalls has each of some clients send calls for several slices at once.
func pipelineCalls(t *testing.T, srv *redis.Server, clients int) {
	t.Helper()
	commands := make([][]string, 1500)
	for i := range commands {
		commands[i] = []string{"FCALL", "look", "1", "a"}
	}
	all := make([]*rawClient, clients)
	for i := range all {
		all[i] = dialRaw(t, srv.Addr().String())
		must(t, all[i].sendAll(commands))
	}
	for _, c := range all {
		for i := range commands {
			r, err := c.receive()
			must(t, err)
			if r.raw != "$5\r\napple\r\n" {
				t.Fatalf("call %d answers %q", i, r.raw)
			}
		}
	}
}

// watchCalls returns what tells the fuel of each round's calls since, those without any left out.
func watchCalls(srv *redis.Server) func() []int64 {
	var mu sync.Mutex
	var last int64
	var rounds []int64
	over := false
	srv.WatchCalls(func(fuel int64) bool {
		mu.Lock()
		defer mu.Unlock()
		if last > 0 && fuel > last {
			rounds = append(rounds, fuel-last)
		}
		last = fuel
		return !over
	})
	return func() []int64 {
		mu.Lock()
		defer mu.Unlock()
		over = true
		return rounds
	}
}

func TestAFunctionReadsAndWritesWhereTheConnectionIs(t *testing.T) {
	c := dialRaw(t, startWithFunctions(t, store.Options{}, redis.Config{}))
	mustDo(t, c, "SET", "a", "apple")
	for _, s := range []struct {
		args []string
		want string
	}{
		{[]string{"FCALL", "look", "1", "a"}, "$5\r\napple\r\n"},
		{[]string{"FCALL_RO", "look", "1", "a"}, "$5\r\napple\r\n"},
		{[]string{"fcall", "put", "1", "b", "pear"}, "$0\r\n\r\n"},
		{[]string{"GET", "b"}, "$4\r\npear\r\n"},
		{[]string{"FCALL_RO", "put", "1", "b", "plum"}, "-ERR function put: returned error code 4\r\n"},
		{[]string{"GET", "b"}, "$4\r\npear\r\n"},
		{[]string{"FCALL", "look", "1", "nothing"}, "-ERR function look: returned error code 1\r\n"},
		{[]string{"FCALL", "none", "0"}, "-ERR Function not found\r\n"},
		{[]string{"FCALL", "look", "x", "a"}, "-ERR Bad number of keys provided\r\n"},
		{[]string{"FCALL", "look", "2", "a"}, "-ERR Number of keys can't be greater than number of args\r\n"},
		{[]string{"FCALL", "look", "-1", "a"}, "-ERR Number of keys can't be negative\r\n"},
		{[]string{"FCALL", "look"}, "-ERR wrong number of arguments for 'fcall' command\r\n"},
		{[]string{"SELECT", "3"}, "+OK\r\n"},
		{[]string{"FCALL", "look", "1", "a"}, "-ERR function look: returned error code 1\r\n"},
		{[]string{"FCALL", "put", "1", "a", "three"}, "$0\r\n\r\n"},
		{[]string{"FCALL", "put", "1", "a", "five", "5"}, "$0\r\n\r\n"},
		{[]string{"FCALL", "put", "1", "a", "none", "16"}, "-ERR function put: returned error code 5\r\n"},
		{[]string{"FCALL", "peek", "1", "a", "5"}, "$4\r\nfive\r\n"},
		{[]string{"FCALL", "peek", "1", "a", "16"}, "-ERR function peek: returned error code 5\r\n"},
		{[]string{"SELECT", "5"}, "+OK\r\n"},
		{[]string{"GET", "a"}, "$4\r\nfive\r\n"},
		{[]string{"SELECT", "0"}, "+OK\r\n"},
		{[]string{"GET", "a"}, "$5\r\napple\r\n"},
		{[]string{"COMMAND", "GETKEYS", "FCALL", "look", "2", "a", "b", "c"}, "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
		{[]string{"MULTI"}, "+OK\r\n"},
		{[]string{"FCALL", "look", "1", "a"}, "-ERR functions are not called inside a transaction: a function is one by itself\r\n"},
		{[]string{"EXEC"}, "-EXECABORT Transaction discarded because of previous errors.\r\n"},
	} {
		if r := mustDo(t, c, s.args...); r.raw != s.want {
			t.Errorf("%q: %q, want %q", s.args, r.raw, s.want)
		}
	}
}

func TestWhatAFunctionThatFailsHasWrittenIsNotApplied(t *testing.T) {
	c := dialRaw(t, startWithFunctions(t, store.Options{}, redis.Config{}))
	mustDo(t, c, "MSET", "a", "1", "b", "2")
	for how, want := range map[string]string{
		"trap": "trapped: unreachable", "fail": "failed: no  money", "return": "returned error code 7", "loop": "fuel",
	} {
		r := mustDo(t, c, "FCALL", "mess", "2", "a", "b", how)
		if r.kind != '-' || !strings.HasPrefix(r.text, "ERR function mess: ") || !strings.Contains(r.text, want) {
			t.Errorf("%s: %q", how, r.raw)
		}
		if r := mustDo(t, c, "MGET", "a", "b"); r.raw != "*2\r\n$1\r\n1\r\n$1\r\n2\r\n" {
			t.Fatalf("after %s: %q", how, r.raw)
		}
	}
	if r := mustDo(t, c, "FCALL", "mess", "2", "a", "b", "nothing"); r.raw != "$0\r\n\r\n" {
		t.Fatalf("%q", r.raw)
	}
	if r := mustDo(t, c, "MGET", "a", "b"); !strings.Contains(r.raw, "broken") {
		t.Fatalf("%q", r.raw)
	}
}

// rounds of work: none ends within a trial, the other does not.
const (
	shortWork = "1"
	longWork  = "50000"
)

func TestCountsOfManyClientsAllCount(t *testing.T) {
	addr := startWithFunctions(t, store.Options{}, redis.Config{Loops: 2})
	const clients, each = 8, 60
	for _, work := range []string{shortWork, longWork} {
		var all sync.WaitGroup
		for range clients {
			c := dialRaw(t, addr)
			all.Go(func() {
				for range each {
					r, err := c.do("FCALL", "count", "1", "n"+work, work)
					if err != nil || r.kind != '$' {
						t.Errorf("FCALL: %v %v", r, err)
						return
					}
				}
			})
		}
		all.Wait()
		if got := counter(t, mustDo(t, dialRaw(t, addr), "GET", "n"+work)); got != clients*each {
			t.Errorf("work %s: %d, want %d", work, got, clients*each)
		}
	}
}

func TestALongFunctionHoldsUpItsOwnConnectionOnly(t *testing.T) {
	addr := startWithFunctions(t, store.Options{}, redis.Config{Loops: 1})
	slow, quick := dialRaw(t, addr), dialRaw(t, addr)
	n := uint64(0)
	for killed := false; !killed; {
		if err := slow.sendAll([][]string{{"FCALL", "endless", "0"}, {"PING"}}); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			n++
			if r := mustDo(t, quick, "FCALL", "count", "1", "n", shortWork); counter(t, r) != n {
				t.Fatalf("%d: %q", n, r.raw)
			}
		}
		why := "was ended"
		if killed = mustDo(t, quick, "FUNCTION", "KILL").kind != '-'; !killed {
			why = "used up its fuel" // A slow machine.
		}
		if r, err := slow.receive(); err != nil || !strings.HasPrefix(r.raw, "-ERR function endless: "+why) {
			t.Fatalf("the long one: %v %v", r, err)
		}
		if r, err := slow.receive(); err != nil || r.raw != "+PONG\r\n" {
			t.Fatalf("behind it: %v %v", r, err)
		}
	}
}

func TestAFunctionListsItsKeysWhateverItsBufferHolds(t *testing.T) {
	c := dialRaw(t, startWithFunctions(t, store.Options{}, redis.Config{}))
	want := map[string]bool{}
	for i := range 500 {
		key := "x" + strconv.Itoa(i)
		want[key] = true
		mustDo(t, c, "SET", key, "value")
		mustDo(t, c, "SET", "y"+key, "value")
	}
	for _, room := range []string{"24", "100", "60000"} {
		r := mustDo(t, c, "FCALL_RO", "list", "0", "x", room)
		got := map[string]bool{}
		if r.kind != '$' {
			t.Fatalf("room %s: %q", room, r.raw)
		}
		for _, key := range strings.Fields(r.text) {
			if !want[key] || got[key] {
				t.Fatalf("room %s: %q came, or came twice", room, key)
			}
			got[key] = true
		}
		if len(got) != len(want) {
			t.Errorf("room %s: %d keys, want %d (%.100q)", room, len(got), len(want), r.raw)
		}
	}
}
