package migrate

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
)

// Steps of a target that returns what came.
const (
	Shut     Step = "shut"     // it serves nothing of it any more; etcd does not know
	Returned Step = "returned" // etcd says that the ranges are the source's, who may not have heard
)

// Steps of the source.
const (
	Given     Step = "given"     // etcd says that the ranges are the target's; operations on them may be under way here
	Severed   Step = "severed"   // none is; the target does not know
	Replaying Step = "replaying" // the ranges were returned, and what the target wrote is about to be replayed
	Dropping  Step = "dropping"  // the target has all, and it is about to be dropped here
)

// ReturnSteps are those of a migration that is taken back.
var ReturnSteps = []Step{Shut, Returned, Replaying}

// SourceSteps are the source's, of one that is not.
var SourceSteps = []Step{Given, Severed, Dropping}

// Halts stop nodes at named steps, for tests that do harm there.
type Halts struct {
	Self view.NodeID
	// Dir is a directory: who comes to a step halts for as long as a file of that name is in it. It leaves word in
	// a file NAME.reached. Empty: nobody halts.
	Dir string
}

// haltLook is how often a file is looked for.
const haltLook = 5 * time.Millisecond

// Reached is the file that tells that a step was reached.
func (h Halts) Reached(s Step) string { return filepath.Join(h.Dir, string(s)+".reached") }

// set tells whether one who comes to the step halts there now.
func (h Halts) set(s Step) bool {
	if h.Dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(h.Dir, string(s)))
	return err == nil
}

// Here returns at once, unless it is where to halt; then when that is over, or ctx.
func (h Halts) Here(ctx context.Context, s Step, tell func(Step)) error {
	if !h.set(s) {
		return ctx.Err()
	}
	tell(s)
	_ = os.WriteFile(h.Reached(s), []byte(h.Self), 0o600) // A test that hears nothing says so.
	for h.set(s) && ctx.Err() == nil {
		pauseFor(ctx, haltLook)
	}
	return ctx.Err()
}
