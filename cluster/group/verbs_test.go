//go:build verbs

package group_test

import (
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/verbs"
)

// With RDMA hardware, or Soft-RoCE, everywhere is there: by fan-out, for plain verbs
// have no WAIT.
func init() {
	providers, modes = []string{"verbs"}, []group.Mode{group.FanOut}
	openers["verbs"] = func(testing.TB) func(string) (fabric.Device, error) {
		return func(name string) (fabric.Device, error) {
			return verbs.Open(verbs.Config{Listen: "127.0.0.1:0", Secret: []byte("s"), Name: name})
		}
	}
}
