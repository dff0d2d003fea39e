//go:build verbs

package verbs_test

import (
	"os"
	"testing"

	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/verbs"
	"github.com/ostrodb/ostro/internal/await"
)

// This test binary is the other process, too.
func TestMain(m *testing.M) {
	fabrictest.Play(map[string]func([]string) error{"target": beTarget})
	os.Exit(await.Run(m))
}

func open(name string) (*verbs.Device, error) {
	return verbs.Open(verbs.Config{Listen: "127.0.0.1:0", Secret: []byte("s"), Name: name})
}

func beTarget([]string) error {
	d, err := open("target")
	if err != nil {
		return err
	}
	return fabrictest.BeTarget(d, nil)
}

func TestAStoppedProcessTakesWritesReadsAndAtomics(t *testing.T) {
	d, err := open("initiator")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	a, target := fabrictest.Single(t, d), fabrictest.Spawn(t, "target")
	fabrictest.UseStopped(t, a, target, fabrictest.Meet(t, a, target))
}
