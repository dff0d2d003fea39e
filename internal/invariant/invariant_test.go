package invariant_test

import (
	"strings"
	"testing"

	"github.com/ostrodb/ostro/internal/invariant"
)

func TestABrokenInvariantPanicsOnlyWhenCompiledIn(t *testing.T) {
	var said string
	func() {
		defer func() {
			if r := recover(); r != nil {
				said = r.(string)
			}
		}()
		invariant.Check(false, "tail %d", 7)
	}()
	if got := strings.Contains(said, "tail 7"); got != invariant.Enabled {
		t.Fatalf("panicked with %q while Enabled is %v", said, invariant.Enabled)
	}
}

func TestAnInvariantThatHoldsIsSilent(t *testing.T) {
	invariant.Check(true, "never said")
}
