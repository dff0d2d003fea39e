//go:build verbs

package verbs_test

import (
	"testing"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
)

func TestVerbsKeepThePromisesOfTheFabric(t *testing.T) {
	fabrictest.Suite{Rounds: 20, Open: func(t testing.TB, names ...string) []fabric.Device {
		var out []fabric.Device
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
			out = append(out, d)
		}
		return out
	}}.Run(t)
}
