package tcp_test

import (
	"testing"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/tcp"
)

func host(t testing.TB, secret string) *tcp.Host {
	t.Helper()
	h, err := tcp.Open(tcp.Config{Listen: "127.0.0.1:0", Secret: []byte(secret)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func device(t testing.TB, h *tcp.Host, name string) fabric.Device {
	t.Helper()
	return fabrictest.Devices(t, h.Device, name)[0]
}

func TestTCPKeepsThePromisesOfTheFabric(t *testing.T) {
	fabrictest.Suite{Open: func(t testing.TB, names ...string) []fabric.Device {
		var out []fabric.Device
		for _, name := range names {
			out = append(out, device(t, host(t, "secret"), name))
		}
		return out
	}}.Run(t)
}
