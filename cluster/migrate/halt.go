package migrate

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
)

// Halts stop migrations at named steps, for tests that do harm there. The zero value stops none.
type Halts struct {
	Self view.NodeID
	// At is a step at which migrations to this node halt for good.
	At Step
	// Dir is a directory: who comes to a step halts for as long as a file of that name is in it. It leaves word in
	// a file NAME.reached.
	Dir string
}

// haltLook is how often a file is looked for.
const haltLook = 5 * time.Millisecond

// Reached is the file that tells that a step was reached.
func (h Halts) Reached(s Step) string { return filepath.Join(h.Dir, string(s)+".reached") }

// set tells whether one who comes to the step halts there now.
func (h Halts) set(s Step) bool {
	if h.At == s {
		return s != ""
	}
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
	if h.At == s {
		<-ctx.Done()
		return ctx.Err()
	}
	_ = os.WriteFile(h.Reached(s), []byte(h.Self), 0o600) // A test that hears nothing says so.
	for h.set(s) && ctx.Err() == nil {
		pauseFor(ctx, haltLook)
	}
	return ctx.Err()
}
