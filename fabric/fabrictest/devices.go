package fabrictest

import (
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

// Devices opens a device for each name, until the test ends.
func Devices[D fabric.Device](t testing.TB, open func(name string) (D, error), names ...string) []fabric.Device {
	t.Helper()
	var all []fabric.Device
	for _, name := range names {
		d, err := open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		all = append(all, d)
	}
	return all
}
