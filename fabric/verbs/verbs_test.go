//go:build verbs

package verbs_test

import (
	"testing"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
)

func TestVerbsKeepThePromisesOfTheFabric(t *testing.T) {
	fabrictest.Suite{Rounds: 20, Open: func(t testing.TB, names ...string) []fabric.Device {
		return fabrictest.Devices(t, open, names...)
	}}.Run(t)
}
