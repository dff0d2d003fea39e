package functions

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	benched "github.com/ostrodb/ostro/bench/guest"
	"github.com/ostrodb/ostro/examples/functions"
	"github.com/ostrodb/ostro/sdk"
)

// toolchains says, per language, how to see whether its tools are there, and
// which Debian packages have them.
var toolchains = map[string]struct{ probe, packages string }{
	"c":    {"clang --version && wasm-ld --version", "clang lld"},
	"rust": {`for c in rustc /usr/bin/rustc; do [ -d "$($c --print target-libdir --target wasm32-unknown-unknown)" ] && exit 0; done; exit 1`, "rustc libstd-rust-dev-wasm32"},
	"as":   {"node --version && npm --version", "nodejs npm"},
	"go":   {"go version", "golang"},
}

// needs skips a test on machines without a language's tools, but not in CI.
func needs(t *testing.T, language string) {
	t.Helper()
	tools := toolchains[language]
	if exec.Command("sh", "-c", tools.probe).Run() == nil {
		return
	}
	const say = "the tools for functions in %s are missing: apt-get install make %s"
	if ci() {
		t.Fatalf(say, language, tools.packages)
	}
	t.Skipf(say, language, tools.packages)
}

func run(t *testing.T, dir, command string, args ...string) {
	t.Helper()
	cmd := exec.Command(command, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", command, strings.Join(args, " "), err, out)
	}
}

func TestAFreshTemplateBuildsAndRuns(t *testing.T) {
	for _, l := range sdk.Languages() {
		t.Run(l.Name, func(t *testing.T) {
			needs(t, l.Name)
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "fresh")
			if _, err := sdk.New(dir, "fresh", l); err != nil {
				t.Fatal(err)
			}
			run(t, dir, "make")
			module, err := os.ReadFile(filepath.Join(dir, "fresh.wasm"))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes", len(module))
			greetsAndCounts(t, newGuest(t, module))
		})
	}
}

func greetsAndCounts(t *testing.T, g *guest) {
	same := func(got, want string) {
		t.Helper()
		if got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	same(g.call(t, "hello", "", "world"), "hello, world")
	g.call(t, "hello", "", "again") // Go's runtime asks for a few things at first.
	if g.hostCalls != 0 {
		t.Errorf("arguments and the response took %d calls of the host, in spite of the area", g.hostCalls)
	}
	large := strings.Repeat("x", 3000) // They do not fit the area.
	same(g.call(t, "hello", "", large), "hello, "+large)
	g.refused(t, 241, "hello", "")
	for _, want := range []string{"1", "2", "3"} {
		same(g.call(t, "count", "visits"), want)
	}
	same(g.call(t, "count", "visits", -10), "-7")
	same(g.data["visits"], "-7")
	g.refused(t, 241, "count", "")
	g.refused(t, 241, "count", "visits", "many")
	g.data["visits"] = "9223372036854775807"
	g.refused(t, 2, "count", "visits", 1)
	g.data["visits"] = "-9223372036854775808"
	g.refused(t, 2, "count", "visits", -1)
	g.data["visits"] = "none"
	g.refused(t, 1, "count", "visits")
}

// The modules that are checked in are what their sources say. Other versions of
// the compilers make other bytes; those of Debian 12, which CI has, make these.
func TestExamplesAreWhatTheirSourcesBuild(t *testing.T) {
	for _, language := range []string{"c", "rust", "as"} {
		t.Run(language, func(t *testing.T) {
			needs(t, language)
			t.Parallel()
			out := t.TempDir()
			run(t, "../../examples/functions", "make", "OUT="+out, language)
			built, err := filepath.Glob(filepath.Join(out, "*.wasm"))
			if err != nil || len(built) == 0 {
				t.Fatalf("nothing was built: %v", err)
			}
			for _, path := range built {
				sameModule(t, path)
			}
		})
	}
}

func sameModule(t *testing.T, path string) {
	t.Helper()
	name := strings.TrimSuffix(filepath.Base(path), ".wasm")
	fresh, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := functions.Module(name)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case bytes.Equal(fresh, kept):
	case ci():
		t.Errorf("%s.wasm is not what its source builds: run `make -C examples/functions` with the compilers of Debian 12, and commit it", name)
	default:
		t.Logf("%s.wasm has other bytes than this machine's compilers make", name)
		loads(t, fresh)
	}
}

// loads compiles a module of another compiler, at least.
func loads(t *testing.T, module []byte) {
	t.Helper()
	newGuest(t, module)
}

func TestGuestsOfTheBenchmarkAreWhatTheirSourcesBuild(t *testing.T) {
	needs(t, "c")
	out := t.TempDir()
	run(t, "../../bench/guest", "make", "OUT="+out)
	for name, kept := range map[string][]byte{"guest": benched.Module, "hostile": benched.Hostile, "numbered": benched.Numbered(0)} {
		fresh, err := os.ReadFile(filepath.Join(out, name+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case bytes.Equal(fresh, kept):
		case ci():
			t.Errorf("%s.wasm is not what its source builds: run `make -C bench/guest` with the compilers of Debian 12, and commit it", name)
		default:
			t.Logf("%s.wasm has other bytes than this machine's compilers make", name)
			loads(t, fresh)
		}
	}
}
