package device_test

import (
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/device/devicetest"
)

func TestDiskIsADevice(t *testing.T) {
	devicetest.Suite{
		Open: func(t *testing.T) device.Device { return openDisk(t, t.TempDir()) },
		Reopen: func(t *testing.T, d device.Device) device.Device {
			return openDisk(t, d.(*device.Disk).Dir())
		},
	}.Run(t)
}

func TestMemoryIsADevice(t *testing.T) {
	devicetest.Suite{
		Open: func(t *testing.T) device.Device { return newMemory(t) },
		Reopen: func(t *testing.T, d device.Device) device.Device {
			return closing(t, d.(*device.Memory).Crash())
		},
	}.Run(t)
}

func openDisk(t testing.TB, dir string) *device.Disk {
	t.Helper()
	d, err := device.OpenDisk(dir)
	must(t, err)
	return d
}

func newMemory(t *testing.T) *device.Memory { return closing(t, device.NewMemory()) }

func closing(t *testing.T, m *device.Memory) *device.Memory {
	t.Cleanup(m.Close)
	return m
}
