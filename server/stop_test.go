package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server"
	"github.com/ostrodb/ostro/tenant/library/librarytest"
)

// ask sends a command of the operator's, and returns where the first line of its reply will be.
func ask(t *testing.T, n *server.Node, words ...string) <-chan string {
	t.Helper()
	conn, err := net.Dial("tcp", n.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	in := bufio.NewReader(conn)
	if password := n.Config().RequirePass; password != "" {
		fmt.Fprintf(conn, "AUTH %s\r\n", password)
		if line, err := in.ReadString('\n'); err != nil || line != "+OK\r\n" {
			t.Fatalf("AUTH answers %q, %v", line, err)
		}
	}
	fmt.Fprintf(conn, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(w), w)
	}
	reply := make(chan string, 1)
	go func() {
		line, err := in.ReadString('\n')
		if err != nil {
			line = err.Error()
		}
		reply <- strings.TrimSpace(line)
	}()
	return reply
}

// underWay waits until clients have sent commands.
func underWay(t *testing.T, n *server.Node, commands ...string) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: n.Addr(), ReadTimeout: testPatience})
	defer c.Close()
	await.True(t, fmt.Sprint(commands, " are under way"), func() bool {
		list, err := c.ClientList(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(commands, func(name string) bool { return !strings.Contains(list, " cmd="+name+" ") })
	})
}

// stall makes what the compiler reads first of a module something that never comes, until release is called. busy waits
// until a compiler has begun.
func stall(t *testing.T, dir string) (busy, release func()) {
	t.Helper()
	kept, err := filepath.Glob(filepath.Join(dir, "functions", "cache", "rewritten", "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("the cache has %q, %v; want one module", kept, err)
	}
	if err := errors.Join(os.Remove(kept[0]), unix.Mkfifo(kept[0], 0o600)); err != nil {
		t.Fatal(err)
	}
	pipe := -1
	busy = func() {
		await.True(t, "a compiler has begun", func() bool {
			pipe, err = unix.Open(kept[0], unix.O_WRONLY|unix.O_NONBLOCK, 0) // It fails while nobody reads.
			return err == nil
		})
	}
	return busy, sync.OnceFunc(func() {
		if pipe >= 0 {
			_ = unix.Close(pipe)
		}
	})
}

func TestAStopWhileAModuleIsCompiledKeepsWhatWasAcknowledged(t *testing.T) {
	config := testConfig(t, t.TempDir())
	config.Durability = store.Checkpoint
	load := []string{"FUNCTION", "LOAD", "REPLACE", "#!wasm name=m\n" + string(librarytest.Module("hello", "f"))}
	n := start(t, config)
	if got := <-ask(t, n, load...); got != "$1" {
		t.Fatalf("the module is not installed: %s", got)
	}
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	busy, release := stall(t, config.Dir)
	defer release()

	n = start(t, config)
	called, installed := ask(t, n, "FCALL", "f", "0"), ask(t, n, load...)
	underWay(t, n, "fcall", "function") // What a server has not read when it stops it does not answer.
	busy()
	if got := say(t, n.Addr(), "SET precious 1"); got != "+OK" {
		t.Fatalf("SET answered %q", got)
	}
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, reply := range map[string]<-chan string{"who calls": called, "who installs": installed} {
		if got := <-reply; !strings.Contains(got, "the server stops") {
			t.Errorf("%s hears %q", what, got)
		}
	}
	release()

	n = start(t, config)
	if got := say(t, n.Addr(), "EXISTS precious"); got != ":1" {
		t.Errorf("after the stop EXISTS answered %q", got)
	}
}

func TestClientsHaveHalfOfTheTimeOfAStop(t *testing.T) {
	end := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), end)
	defer cancel()
	clients, cancel := server.ForClients(ctx)
	defer cancel()
	if at, ok := clients.Deadline(); !ok || at.After(end.Add(-25*time.Minute)) || at.Before(end.Add(-35*time.Minute)) {
		t.Errorf("clients have until %v of a stop until %v", at, end)
	}
	clients, cancel = server.ForClients(t.Context())
	defer cancel()
	if at, ok := clients.Deadline(); ok {
		t.Errorf("clients have until %v of a stop without an end", at)
	}
}
