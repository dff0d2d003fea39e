package port_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/ostrodb/ostro/internal/port"
)

func TestAReservedPortIsFreeForWhoNamesItAgainAndAgain(t *testing.T) {
	r := port.For(t)
	for range 3 {
		l, err := net.Listen("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := net.Listen("tcp", r.Addr()); !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatalf("a second listener: %v", err)
		}
		_ = l.Close()
		_ = c.Close()
	}
	if _, err := net.Dial("tcp", r.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("connecting where nobody listens: %v", err)
	}
}

func TestAReservedPortIsGivenToNobodyWhoTakesAny(t *testing.T) {
	reserved := map[int]bool{}
	for range 200 {
		r := port.For(t)
		if reserved[r.Number] {
			t.Fatalf("port %d was reserved twice", r.Number)
		}
		reserved[r.Number] = true
	}
	target := listen(t)
	for range 500 {
		if n := number(listen(t).Addr()); reserved[n] {
			t.Fatalf("a listener was given the reserved port %d", n)
		}
		c, err := net.Dial("tcp", target.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if n := number(c.LocalAddr()); reserved[n] {
			t.Fatalf("a connection was given the reserved port %d", n)
		}
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func number(a net.Addr) int { return a.(*net.TCPAddr).Port }
