//go:build invariants

package invariant

import "fmt"

// Enabled tells whether checks are compiled in. Guard the work that only a
// check needs with it.
const Enabled = true

// Check panics with the message when holds is false.
func Check(holds bool, format string, args ...any) {
	if !holds {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}
