package frame_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/ostrodb/ostro/fabric/frame"
)

// echo serves by saying back what comes.
func echo(c net.Conn) { _, _ = io.Copy(c, c) }

func dial(t *testing.T, d *frame.Door) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", d.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// served tells whether somebody answers.
func served(c net.Conn) bool {
	if _, err := c.Write([]byte("?")); err != nil {
		return false
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err == nil
}

func TestADoorServesUpToItsLimitAndEndsAllWhenItCloses(t *testing.T) {
	l, err := frame.ListenUnix("unix", filepath.Join(t.TempDir(), "door.sock"))
	if err != nil {
		t.Fatal(err)
	}
	d := frame.OpenDoor(l, 2, nil, echo)
	one, two := dial(t, d), dial(t, d)
	if !served(one) || !served(two) {
		t.Fatal("two connections are not served")
	}
	if served(dial(t, d)) {
		t.Fatal("a third connection is served")
	}
	_ = one.Close()
	for !served(dial(t, d)) { // The door learns of the end when it reads.
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if served(two) {
		t.Fatal("a connection is served behind a closed door")
	}
}

func TestOnlyTheUserMayOpenASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "door.sock")
	l, err := frame.ListenUnix("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("its mode is %v, %v", st.Mode(), err)
	}
	if _, err := frame.ListenUnix("unix", path); err == nil {
		t.Fatal("two listen on one socket")
	}
}
