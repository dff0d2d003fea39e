package shm_test

import (
	"path/filepath"
	"testing"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/shm"
)

// serve starts a NIC in this process, reached like one in another.
func serve(t testing.TB) string {
	t.Helper()
	e, err := nic.New(nic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "nic.sock")
	s, err := shm.Serve(path, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return path
}

func open(t testing.TB, path string, names ...string) []fabric.Device {
	t.Helper()
	return fabrictest.Devices(t, func(name string) (fabric.Device, error) { return shm.Open(path, name) }, names...)
}

func TestShmKeepsThePromisesOfTheFabric(t *testing.T) {
	fabrictest.Suite{Open: func(t testing.TB, names ...string) []fabric.Device {
		return open(t, serve(t), names...)
	}}.Run(t)
}
