// Package port keeps free ports for servers that cannot be asked which one they
// took: a program of its own, or a node that starts more than once.
//
// To listen on port 0, close, and hope that the number is still free when the
// server comes is a race: the system gives the number to the next listener or
// outgoing connection that asks for any.
package port

import (
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// Reservation holds a port of the loopback. It is bound and never listens:
//
//   - The system chooses it for nobody else.
//   - A server that names it may listen there, again and again, for servers set
//     SO_REUSEADDR, and so does the reservation.
//   - Connections are refused while no server listens.
type Reservation struct {
	Number int
	fd     int
}

// Reserve takes a free port until Release.
func Reserve() (*Reservation, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	number, err := bind(fd)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	return &Reservation{number, fd}, nil
}

func bind(fd int) (number int, err error) {
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	// Only now: two that may share could be given the same number.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return name.(*unix.SockaddrInet4).Port, nil
}

// Addr is the port with its host.
func (r *Reservation) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Number)) }

// Release gives the port back. A server that listens keeps it.
func (r *Reservation) Release() { _ = unix.Close(r.fd) }

// Test is what For needs of a testing.TB.
type Test interface {
	Helper()
	Cleanup(func())
	Fatal(...any)
}

// For reserves a port until the test ends.
func For(t Test) *Reservation {
	t.Helper()
	r, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Release)
	return r
}
