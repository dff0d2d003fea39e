package redis_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
)

func ask(t *testing.T, c *rawClient, args ...string) string {
	t.Helper()
	r, err := c.do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return r.text
}

func TestCheckpointsAreTakenOnRequest(t *testing.T) {
	addr := startOstroOn(t, store.Options{Dir: t.TempDir(), Durability: store.Checkpoint}, redis.Config{Loops: 2})
	c := dialRaw(t, addr)
	converse(t, c, [][2]string{
		{"SET a 1", "+OK"},
		{"SAVE", "+OK"},
		{"GET a", "$1 1"},
		{"BGSAVE SCHEDULE", "+Background saving started"},
	}...)
	await.True(t, "the second checkpoint is there", func() bool {
		info := ask(t, c, "info", "persistence")
		return strings.Contains(info, "rdb_bgsave_in_progress:0") && strings.Contains(info, "rdb_saves:2")
	})
	at, err := strconv.ParseInt(ask(t, c, "lastsave"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > time.Minute {
		t.Errorf("LASTSAVE: %d, %v", at, err)
	}
}

func TestShutdownIsPassedOnAndClosesTheClient(t *testing.T) {
	for _, how := range []string{"", "nosave"} {
		srv, st := launch(t, store.Options{}, redis.Config{})
		c := dialRaw(t, srv.Addr().String())
		if r, err := c.do(strings.Fields("shutdown " + how)...); err == nil {
			t.Errorf("SHUTDOWN %s answers %q", how, r.raw)
		}
		<-srv.ShutdownRequested()
		if saves := srv.ShutdownSaves(); saves != (how == "") {
			t.Errorf("SHUTDOWN %s saves: %v", how, saves)
		}
		must(t, srv.Shutdown(context.Background()))
		must(t, st.Close())
	}
}

// fill writes until the server says no, at most n kilobytes.
func fill(t *testing.T, c *rawClient, n int) string {
	t.Helper()
	for i := range n {
		r, err := c.do("set", fmt.Sprint("filler", i), strings.Repeat("x", 1000))
		if err != nil {
			t.Fatal(err)
		}
		if r.kind == '-' {
			return r.text
		}
	}
	return ""
}

func TestAtTheMemoryLimitWritesAreRefused(t *testing.T) {
	o := store.Options{SegmentBytes: 128 << 10, MemoryBytes: 2 << 20, Policy: store.Refuse}
	c := dialRaw(t, startOstroOn(t, o, redis.Config{}))
	converse(t, c, [2]string{"CONFIG GET maxmemory-policy", "*2 $16 maxmemory-policy $10 noeviction"})
	if got, want := fill(t, c, 10_000), "OOM command not allowed when used memory > 'maxmemory'."; got != want {
		t.Fatalf("a full server answers %q, want %q", got, want)
	}
	if got := ask(t, c, "get", "filler0"); len(got) != 1000 {
		t.Errorf("a full server reads %q", got)
	}
	converse(t, c, [][2]string{
		{"DEL filler0 filler1", ":2"},
		{"CONFIG SET maxmemory 64mb", "+OK"},
		{"CONFIG GET maxmemory", "*2 $9 maxmemory $8 67108864"},
		{"SET a 1", "+OK"},
	}...)
}

// The settings refuse it, too. What is evicted while it moves to another node would come back from where it was.
func TestANodeOfAClusterDoesNotBecomeACache(t *testing.T) {
	o := store.Options{Dir: t.TempDir(), Durability: store.EverySec, Cluster: true, MemoryBytes: 128 << 20, Policy: store.Refuse}
	c := dialRaw(t, startOstroOn(t, o, redis.Config{}))
	if got := ask(t, c, "config", "set", "maxmemory-policy", "allkeys-lru"); !strings.Contains(got, "a node of a cluster cannot evict yet") {
		t.Errorf("it answers %q", got)
	}
	converse(t, c, [][2]string{
		{"CONFIG GET maxmemory-policy", "*2 $16 maxmemory-policy $10 noeviction"},
		{"CONFIG SET maxmemory-policy spill", "+OK"},
	}...)
}

func TestAtTheMemoryLimitACacheEvicts(t *testing.T) {
	o := store.Options{SegmentBytes: 128 << 10, MemoryBytes: 8 << 20, Policy: store.Evict}
	c := dialRaw(t, startOstroOn(t, o, redis.Config{}))
	converse(t, c, [2]string{"CONFIG GET maxmemory-policy", "*2 $16 maxmemory-policy $11 allkeys-lru"})
	if got := fill(t, c, 20_000); got != "" {
		t.Fatalf("a cache answers %q", got)
	}
	if got := ask(t, c, "dbsize"); got == "20000" {
		t.Error("nothing was evicted")
	}
}

func TestInfoShowsTheSectionsAskedFor(t *testing.T) {
	c := dialRaw(t, startOstro(t, redis.Config{}))
	sections := func(args ...string) (names []string) {
		for line := range strings.Lines(ask(t, c, append([]string{"info"}, args...)...)) {
			if name, found := strings.CutPrefix(strings.TrimSpace(line), "# "); found {
				names = append(names, name)
			}
		}
		return names
	}
	usual := "Server Clients Memory Persistence Stats Replication CPU Modules Errorstats Cluster Keyspace Ostro"
	everything := "Server Clients Memory Persistence Stats Replication CPU Modules Commandstats Errorstats Cluster Keyspace Ostro"
	for args, want := range map[string]string{
		"": usual, "default": usual, "all": everything, "everything": everything,
		"server": "Server", "KEYSPACE cpu": "CPU Keyspace", "nosuch": "",
	} {
		if got := strings.Join(sections(strings.Fields(args)...), " "); got != want {
			t.Errorf("INFO %s shows %q, want %q", args, got, want)
		}
	}
}

func TestInfoCountsCommandsAndErrors(t *testing.T) {
	c := dialRaw(t, startOstro(t, redis.Config{}))
	converse(t, c, [][2]string{
		{"CONFIG RESETSTAT", "+OK"},
		{"SET a x", "+OK"},
		{"INCR a", "-ERR value is not an integer or out of range"},
		{"INCR a b", "-ERR wrong number of arguments for 'incr' command"},
	}...)
	info := ask(t, c, "info", "commandstats", "errorstats")
	for _, want := range []string{"cmdstat_set:calls=1,", "cmdstat_incr:calls=1,", "rejected_calls=1,failed_calls=1", "errorstat_ERR:count=2"} {
		if !strings.Contains(info, want) {
			t.Errorf("INFO does not say %s:\n%s", want, info)
		}
	}
	converse(t, c, [2]string{"CONFIG RESETSTAT", "+OK"})
	if info := ask(t, c, "info", "errorstats"); strings.Contains(info, "errorstat_ERR") {
		t.Errorf("after RESETSTAT: %s", info)
	}
}

func TestSlowCommandsAreLogged(t *testing.T) {
	c := dialRaw(t, startOstro(t, redis.Config{SlowlogThresholdMicros: redis.LogEverything}))
	converse(t, c, [][2]string{
		{"CLIENT SETNAME me", "+OK"},
		{"SLOWLOG RESET", "+OK"},
		{"SET a 1", "+OK"},
		{"CONFIG SET slowlog-log-slower-than -1", "+OK"},
	}...)
	r, err := c.do("slowlog", "get", "100")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range r.items {
		if args := texts(e.items[3]); strings.Join(args, " ") == "SET a 1" {
			found = true
			if e.items[4].text != c.conn.LocalAddr().String() || e.items[5].text != "me" {
				t.Errorf("the entry names client %q, %q", e.items[4].text, e.items[5].text)
			}
		}
	}
	if !found {
		t.Errorf("SET is not in the slow log: %q", r.raw)
	}
}

func TestPasswordsStayOutOfTheSlowLog(t *testing.T) {
	c := dialRaw(t, startOstro(t, redis.Config{SlowlogThresholdMicros: redis.LogEverything}))
	for _, line := range []string{
		"AUTH secret", "AUTH default secret", "HELLO 2 AUTH default secret", "CONFIG SET requirepass secret", "MULTI", "AUTH default secret", "EXEC",
	} {
		ask(t, c, strings.Fields(line)...)
	}
	r, err := c.do("slowlog", "get", "-1")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.items) < 4 || strings.Contains(r.raw, "secret") {
		t.Errorf("the slow log shows %q", r.raw)
	}
}

func TestInfoCountsTheCommandsOfATransaction(t *testing.T) {
	c := dialRaw(t, startOstro(t, redis.Config{}))
	for _, line := range []string{"CONFIG RESETSTAT", "MULTI", "SET a x", "INCR a", "EXEC"} {
		ask(t, c, strings.Fields(line)...)
	}
	info := ask(t, c, "info", "commandstats")
	for _, want := range []string{"cmdstat_set:calls=1,", "cmdstat_incr:calls=1,", "cmdstat_exec:calls=1,", "failed_calls=1"} {
		if !strings.Contains(info, want) {
			t.Errorf("INFO does not say %s:\n%s", want, info)
		}
	}
}
