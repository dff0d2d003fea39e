package functions

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/sdk"
)

// Go's runtime and library ask WASI for much that a process has. A function gets none of it.
func TestAFunctionInGoHasNothingOfTheProcess(t *testing.T) {
	needs(t, "go")
	t.Setenv("OSTRO_SECRET", "x")
	dir := t.TempDir()
	var source string
	for _, l := range sdk.Languages() {
		if l.Name == "go" {
			if _, err := sdk.New(dir, "probe", l); err != nil {
				t.Fatal(err)
			}
			source = strings.ReplaceAll(l.Source, "NAME", "probe")
		}
	}
	code, err := os.ReadFile(filepath.Join("testdata", "authority.go"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, source), code, 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "make")
	module, err := os.ReadFile(filepath.Join(dir, "probe.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, module)
	if got, want := g.call(t, "try", ""), fmt.Sprintf("args 0, environment 0, year %d\n", g.now.UTC().Year()); got != want {
		t.Errorf("it got\n%swant\n%s", got, want)
	}
}
