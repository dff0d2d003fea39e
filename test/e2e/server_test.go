package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

func value(i int) string { return fmt.Sprintf("value %d of some length", i) }

func TestRedisCliAndGoRedisSpeakToAFreshServer(t *testing.T) {
	p := serve(t, filepath.Join(t.TempDir(), "fresh"))
	p.redisCLI("", "SET", "greeting", "hello").wants(t, 0, "OK")
	p.redisCLI("", "GET", "greeting").wants(t, 0, "hello")
	p.redisCLI("", "INCR", "n").wants(t, 0, "1")
	p.redisCLI("", "-3", "HELLO").wants(t, 0, "proto")
	p.redisCLI("", "NOSUCH").wants(t, 0, "ERR unknown command")
	p.redisCLI("", "INFO").wants(t, 0, "redis_version:", "# Keyspace")

	c := p.client()
	ctx := t.Context()
	if got, err := c.Get(ctx, "greeting").Result(); got != "hello" || err != nil {
		t.Fatalf("go-redis got %q, %v", got, err)
	}
	if err := c.Watch(ctx, func(tx *redis.Tx) error {
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Incr(ctx, "n")
			pipe.Append(ctx, "greeting", " there")
			return nil
		})
		return err
	}, "n"); err != nil {
		t.Fatal(err)
	}
	if got := c.MGet(ctx, "n", "greeting", "none").Val(); fmt.Sprint(got) != "[2 hello there <nil>]" {
		t.Fatalf("got %v", got)
	}
}

func TestSIGTERMUnderLoadLosesNothingAcknowledged(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, dir)
	acknowledged := make([]int, 4) // by writer: its keys below this number are safe
	began := make(chan struct{}, len(acknowledged))
	var writers sync.WaitGroup
	for w := range acknowledged {
		c := p.client()
		writers.Go(func() {
			for i := 0; ; i++ {
				if err := c.Set(t.Context(), fmt.Sprintf("w%d:%d", w, i), i, 0).Err(); err != nil {
					return
				}
				acknowledged[w] = i + 1
				if i == 200 {
					began <- struct{}{}
				}
			}
		})
	}
	for range acknowledged {
		<-began
	}
	p.stop()
	writers.Wait()

	c := serve(t, dir).client()
	for w, n := range acknowledged {
		for i := range n {
			if got, err := c.Get(t.Context(), fmt.Sprintf("w%d:%d", w, i)).Int(); err != nil || got != i {
				t.Fatalf("writer %d, key %d of %d acknowledged: got %d, %v", w, i, n, got, err)
			}
		}
	}
}

func TestKillLosesNothingAcknowledged(t *testing.T) {
	for _, durability := range []string{"everysec", "always"} {
		t.Run(durability, func(t *testing.T) {
			dir := t.TempDir()
			p := serve(t, dir, "--durability", durability)
			fill(t, p.client(), 5000, value)
			p.Kill()
			verify(t, serve(t, dir, "--durability", durability).client(), 5000, value)
		})
	}
}

func TestASignalThatComesTwiceAtOnceStillStopsInGoodOrder(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, dir)
	text, err := os.ReadFile(filepath.Join(dir, "LOCK"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if err := syscall.Kill(pid, s); err != nil {
			t.Fatal(err)
		}
	}
	p.ended().wants(t, 0, `"msg":"stopped"`)
}

func TestAGracefulStopKeepsEverythingUnderCheckpointDurability(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, dir, "--durability", "checkpoint")
	fill(t, p.client(), 3000, value)
	p.stop()
	verify(t, serve(t, dir, "--durability", "checkpoint").client(), 3000, value)
}

func TestTheCommandSHUTDOWNStopsTheServer(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, dir)
	p.redisCLI("", "SET", "a", "1").wants(t, 0, "OK")
	p.redisCLI("", "SHUTDOWN")
	p.ended().wants(t, 0, "a client sent SHUTDOWN")
	serve(t, dir).redisCLI("", "GET", "a").wants(t, 0, "1")
}

func TestDataLargerThanMemoryStaysReadableAndWritable(t *testing.T) {
	dir := t.TempDir()
	small := []string{"--segment-size", "1MiB", "--memory-limit", "16MiB"}
	p := serve(t, dir, small...)
	const keys = 8000 // of 8 KiB: four times the limit
	big := func(i int) string { return fmt.Sprintf("%08d", i) + strings.Repeat("x", 8<<10) }
	fill(t, p.client(), keys, big)
	verify(t, p.client(), keys, big)
	p.Kill()
	verify(t, serve(t, dir, small...).client(), keys, big)
}

func TestAMemoryOnlyServerLeavesNoFilesBehind(t *testing.T) {
	work := t.TempDir()
	t.Chdir(work)
	p := serve(t, "")
	p.redisCLI("", "SET", "a", "1").wants(t, 0, "OK")
	p.stop()
	if left, _ := os.ReadDir(work); len(left) != 0 {
		t.Fatalf("left behind: %v", left)
	}
}

func TestAPasswordKeepsStrangersOut(t *testing.T) {
	p := serve(t, t.TempDir(), "--requirepass", "hunter2")
	p.redisCLI("", "GET", "a").wants(t, 0, "NOAUTH")
	p.redisCLI("", "-a", "hunter2", "--no-auth-warning", "SET", "a", "1").wants(t, 0, "OK")
	p.cli("", "-a", "hunter2", "GET", "a").wants(t, 0, "1")
	p.cli("", "-a", "wrong", "GET", "a").wants(t, 1, "WRONGPASS")
	if strings.Contains(p.Log(), "hunter2") {
		t.Fatal("the password is in the log")
	}
}

func TestTheAdminPortTellsHowTheServerIs(t *testing.T) {
	p := serve(t, t.TempDir())
	fill(t, p.client(), 100, value)
	get := func(path string) string {
		r, err := http.Get("http://" + p.admin + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, _ := io.ReadAll(r.Body)
		if r.StatusCode != 200 {
			t.Fatalf("%s: %s %s", path, r.Status, body)
		}
		return string(body)
	}
	for path, want := range map[string]string{
		"/healthz": "ok", "/readyz": "ok", "/": "Ostro",
		"/metrics": "ostro_keys 100", "/debug/pprof/": "goroutine",
	} {
		if body := get(path); !strings.Contains(body, want) {
			t.Errorf("%s lacks %q", path, want)
		}
	}
}
