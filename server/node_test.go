package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/port"
	"github.com/ostrodb/ostro/server"
)

// testConfig is a small node on ports of its own.
func testConfig(t *testing.T, dir string) server.Config {
	t.Helper()
	c := server.Default()
	c.Bind = []string{"127.0.0.1"}
	c.Port = port.For(t).Number
	c.AdminAddr = "127.0.0.1:0"
	c.Dir = dir
	c.SegmentSize = 64 << 10
	c.MemoryLimit = server.Budget{Bytes: 16 << 20}
	return c
}

func start(t *testing.T, c server.Config, options ...server.Option) *server.Node {
	t.Helper()
	n, err := server.Start(c, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Stop(context.Background()) })
	return n
}

// say sends one inline command and returns the first line of the reply.
func say(t *testing.T, addr, command string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s\r\n", command)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func TestANodeServesUntilItIsStoppedAndKeepsItsData(t *testing.T) {
	dir := t.TempDir()
	n := start(t, testConfig(t, dir))
	if got := say(t, n.Addr(), "SET a 1"); got != "+OK" {
		t.Fatalf("SET answered %q", got)
	}
	if !n.Phase().Ready || n.Health() != nil {
		t.Fatalf("phase %v, health %v", n.Phase(), n.Health())
	}
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n.Phase().Ready {
		t.Fatal("still ready after Stop")
	}
	again := start(t, testConfig(t, dir))
	if got := say(t, again.Addr(), "EXISTS a"); got != ":1" {
		t.Fatalf("after a restart EXISTS answered %q", got)
	}
}

func TestANodeThatFailsToStartLetsGoOfWhatItTook(t *testing.T) {
	dir := t.TempDir()
	blocked := testConfig(t, dir)
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", blocked.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := server.Start(blocked); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("got %v", err)
	}
	start(t, testConfig(t, dir))
	if _, err := server.Start(testConfig(t, dir)); !errors.Is(err, device.ErrLocked) {
		t.Fatalf("a second node on one directory: %v", err)
	}
}

func TestASecondNodeTakesAnotherAdminPortIfAllowedTo(t *testing.T) {
	first := start(t, testConfig(t, ""))
	second := testConfig(t, "")
	second.AdminAddr = first.AdminAddr()
	if _, err := server.Start(second); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("got %v", err)
	}
	n, err := server.Start(second, server.WithAnyAdminPort())
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop(context.Background())
	if r, err := http.Get("http://" + n.AdminAddr() + "/readyz"); err != nil || r.StatusCode != 200 {
		t.Fatalf("%v, %v", r, err)
	}
}

func TestAMemoryOnlyNodeKeepsNothingAndCannotSpill(t *testing.T) {
	n := start(t, testConfig(t, ""))
	if c := n.Config(); c.Durability != store.None || c.MemoryPolicy != store.Refuse {
		t.Fatalf("runs with %v and %v", c.Durability, c.MemoryPolicy)
	}
}

func TestADirectoryKeepsTheSegmentSizeItWasMadeWith(t *testing.T) {
	dir := t.TempDir()
	n := start(t, testConfig(t, dir))
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := testConfig(t, dir)
	c.SegmentSize = 128 << 10
	start(t, c)
}
