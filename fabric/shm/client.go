package shm

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/driver"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/ring"
)

// caps is what the provider can do. A NIC that reaches other machines promises a
// watcher of its memory no more than those can.
func caps(remote bool) fabric.Caps {
	return fabric.Caps{Wait: true, Rings: true, Persist: true, Counts: true, WatchOrder: ring.InOrder && !remote, SurvivesStop: true}
}

// Open attaches to the NIC that serves the socket, as a device of this name.
func Open(path, name string) (*driver.Device, error) {
	c, err := dial(path, name)
	if err != nil {
		return nil, fmt.Errorf("shm: attach to the NIC at %s: %w", path, err)
	}
	return driver.New(name, caps(c.remote), c), nil
}

// client is the way to an engine in another process.
type client struct {
	conn  *net.UnixConn
	bells *fabric.Memory
	event *os.File
	fd    int // of event

	remote bool // the NIC reaches other machines

	mu      sync.Mutex // one request at a time
	answers chan reply
	lost    chan struct{}
}

type reply struct {
	answer
	files []*os.File
}

func dial(path, name string) (*client, error) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	c := &client{conn: conn, answers: make(chan reply), lost: make(chan struct{})}
	if err := c.greet(name); err != nil {
		_ = conn.Close()
		return nil, err
	}
	go c.read()
	return c, nil
}

func (c *client) greet(name string) error {
	if err := send(c.conn, hello{Version: version, Name: name}); err != nil {
		return err
	}
	var a answer
	files, err := receive(c.conn, &a)
	switch {
	case err != nil:
	case a.Error != "":
		err = errors.New(a.Error)
	case len(files) != 2:
		err = fmt.Errorf("the NIC sent %d descriptors, not 2", len(files))
	default:
		c.bells, err = fabric.MapFile(files[0], 0, a.MemoryBytes)
	}
	if err != nil {
		closeAll(files)
		return err
	}
	_ = files[0].Close()
	c.event, c.remote = files[1], a.Remote
	c.fd = int(c.event.Fd())
	return unix.SetNonblock(c.fd, true)
}

// read takes answers off the socket until the NIC is gone.
func (c *client) read() {
	defer close(c.lost)
	for {
		var r reply
		var err error
		if r.files, err = receive(c.conn, &r.answer); err != nil {
			closeAll(r.files)
			return
		}
		c.answers <- r
	}
}

// Call sends a control request and waits for its answer.
func (c *client) Call(r nic.Request, file *os.File) (nic.Response, *fabric.Memory, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var files []int
	if file != nil {
		files = append(files, int(file.Fd()))
	}
	if err := send(c.conn, r, files...); err != nil {
		return nic.Response{}, nil, errors.Join(fabric.ErrNICLost, err)
	}
	select {
	case a := <-c.answers:
		return a.take()
	case <-c.lost:
		return nic.Response{}, nil, fabric.ErrNICLost
	}
}

// take turns an answer into what Call returns.
func (r reply) take() (nic.Response, *fabric.Memory, error) {
	defer closeAll(r.files)
	switch {
	case r.Error != "" && sentinels[r.Code] != nil:
		return r.Response, nil, &remoteError{r.Error, sentinels[r.Code]}
	case r.Error != "":
		return r.Response, nil, errors.New(r.Error)
	case r.MemoryBytes == 0:
		return r.Response, nil, nil
	case len(r.files) != 1:
		return r.Response, nil, fmt.Errorf("shm: the NIC sent %d descriptors, not 1", len(r.files))
	}
	mem, err := fabric.MapFile(r.files[0], 0, r.MemoryBytes)
	return r.Response, mem, err
}

// remoteError is an error of the NIC process that callers can tell.
type remoteError struct {
	text     string
	sentinel error
}

func (e *remoteError) Error() string { return e.text }

func (e *remoteError) Unwrap() error { return e.sentinel }

func (c *client) Doorbells() ([]byte, int) { return c.bells.Bytes(), c.fd }

func (c *client) Lost() <-chan struct{} { return c.lost }

// Close ends the session. The NIC closes its end when it has let go of all
// memory; only then is this a fence.
func (c *client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.CloseWrite()
	<-c.lost
	return errors.Join(c.conn.Close(), c.bells.Close(), c.event.Close())
}
