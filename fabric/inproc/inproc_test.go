package inproc_test

import (
	"os"
	"testing"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/inproc"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/internal/await"
)

func TestMain(m *testing.M) { os.Exit(await.RunToEnd(m)) }

func network(t testing.TB) *inproc.Network {
	t.Helper()
	n, err := inproc.New(nic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func devices(t testing.TB, n *inproc.Network, names ...string) []fabric.Device {
	t.Helper()
	return fabrictest.Devices(t, n.Device, names...)
}

func TestInprocKeepsThePromisesOfTheFabric(t *testing.T) {
	fabrictest.Suite{Open: func(t testing.TB, names ...string) []fabric.Device {
		return devices(t, network(t), names...)
	}}.Run(t)
}
