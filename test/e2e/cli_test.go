package e2e

import (
	"fmt"
	"strings"
	"testing"
)

func TestCliRunsOneCommandAndExitsByItsReply(t *testing.T) {
	p := serve(t, t.TempDir())
	p.cli("", "SET", "greeting", "hello there").wants(t, 0, "OK")
	p.cli("", "GET", "greeting").wants(t, 0, "hello there")
	p.cli("", "--no-raw", "GET", "none").wants(t, 0, "(nil)")
	p.cli("", "INCR", "greeting").wants(t, 1, "ERR value is not an integer")
	p.cli("", "-n", "3", "SET", "in", "three").wants(t, 0, "OK")
	p.cli("", "EXISTS", "in").wants(t, 0, "0")
	p.cli("", "SET", "dash", "-1", "-x").wants(t, 1, "ERR syntax error")
	run(t, "", "cli", "-p", ownPort(t), "PING").wants(t, 1, "connection refused", "ostro server")
}

func TestCliPrintsJSON(t *testing.T) {
	p := serve(t, t.TempDir())
	p.cli("", "MSET", "a", "1", "b", "\xff").wants(t, 0)
	if got := p.cli("", "--json", "MGET", "a", "b", "c").stdout; got != `["1",{"base64":"/w=="},null]`+"\n" {
		t.Fatalf("got %s", got)
	}
	if got := p.cli("", "--json", "CONFIG", "GET", "databases").stdout; got != `{"databases":"16"}`+"\n" {
		t.Fatalf("got %s", got)
	}
}

func TestCliRunsAPipeOfCommandsInOrder(t *testing.T) {
	p := serve(t, t.TempDir())
	var in, want strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&in, "SET key:%d \"value %d\"\nGET key:%d\n", i, i, i)
		fmt.Fprintf(&want, "OK\nvalue %d\n", i)
	}
	if o := p.cli(in.String()); o.code != 0 || o.stdout != want.String() {
		t.Fatalf("exit %d, %d bytes, want %d", o.code, len(o.stdout), want.Len())
	}
	p.cli("a value from standard input", "-x", "SET", "page").wants(t, 0, "OK")
	p.cli("", "GET", "page").wants(t, 0, "a value from standard input")
}
