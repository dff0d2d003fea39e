package tcp_test

import (
	"path/filepath"
	"testing"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/shm"
)

// attached opens a device through a NIC of its own that listens, as a program
// does on a machine with `ostro nic --listen`.
func attached(t testing.TB, name string) fabric.Device {
	t.Helper()
	e, err := nic.New(nic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	board, err := e.Listen("127.0.0.1:0", "", []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "nic.sock")
	s, err := shm.Serve(socket, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := shm.Open(socket, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, end := range []func() error{d.Close, s.Close, board.Close, e.Close} {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	})
	return d
}

func TestProgramsOnNICsOfTheirOwnKeepThePromisesOfTheFabric(t *testing.T) {
	fabrictest.Suite{Rounds: 60, Open: func(t testing.TB, names ...string) []fabric.Device {
		var out []fabric.Device
		for _, name := range names {
			out = append(out, attached(t, name))
		}
		return out
	}}.Run(t)
}
