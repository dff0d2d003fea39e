package frame

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// acceptPause is the time until the next try when the system has no room for a
// connection.
const acceptPause = 50 * time.Millisecond

// Door serves each connection of a listener in a goroutine of its own.
type Door struct {
	listener net.Listener
	limit    int
	log      *slog.Logger
	serve    func(net.Conn)
	wait     sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

// OpenDoor serves up to limit connections at a time; more are closed at once. A
// connection is closed when serve returns.
func OpenDoor(l net.Listener, limit int, log *slog.Logger, serve func(net.Conn)) *Door {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &Door{listener: l, limit: limit, log: log, serve: serve, conns: map[net.Conn]struct{}{}}
	d.wait.Go(d.accept)
	return d
}

// Close ends all connections and returns when nobody serves any more.
func (d *Door) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	for c := range d.conns {
		_ = c.Close()
	}
	d.mu.Unlock()
	err := d.listener.Close()
	d.wait.Wait()
	return err
}

// Addr is where the door is.
func (d *Door) Addr() net.Addr { return d.listener.Addr() }

func (d *Door) accept() {
	for {
		c, err := d.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			d.log.Error("a connection could not be accepted", "error", err)
			time.Sleep(acceptPause)
			continue
		}
		if d.enter(c) {
			d.wait.Go(func() {
				defer d.leave(c)
				d.serve(c)
			})
		}
	}
}

func (d *Door) enter(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || len(d.conns) >= d.limit {
		_ = c.Close()
		return false
	}
	d.conns[c] = struct{}{}
	return true
}

func (d *Door) leave(c net.Conn) {
	_ = c.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
}

// ListenUnix listens on a socket of the kind (unix or unixpacket) that only this
// user can open. A socket that a dead process left behind is replaced.
func ListenUnix(kind, path string) (*net.UnixListener, error) {
	if err := clearStale(kind, path); err != nil {
		return nil, err
	}
	before := unix.Umask(0o177)
	l, err := net.ListenUnix(kind, &net.UnixAddr{Name: path, Net: kind})
	unix.Umask(before)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

// clearStale removes a socket nobody listens on.
func clearStale(kind, path string) error {
	st, err := os.Lstat(path)
	if err != nil || st.Mode()&os.ModeSocket == 0 {
		return nil // Listening tells what is wrong with it.
	}
	c, err := net.DialUnix(kind, nil, &net.UnixAddr{Name: path, Net: kind})
	if err == nil {
		_ = c.Close()
		return fmt.Errorf("another process serves %s already", path)
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return os.Remove(path)
	}
	return nil
}
