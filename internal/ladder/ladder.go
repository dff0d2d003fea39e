// Package ladder knows the order in which Ostro's packages stand and finds
// imports that climb it the wrong way. It has no user but its own test.
//
// It reads import clauses with go/parser instead of asking `go list`: the
// test's result then depends on files that the test itself opened, so the test
// cache forgets it when one of them changes.
package ladder

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Module is the import path that all of Ostro's own packages begin with.
const Module = "github.com/ostrodb/ostro"

// Rungs lists every package folder, lowest first. A package imports only what
// stands before it. An entry that ends in /... stands for all folders below,
// which may import one another.
var Rungs = []string{
	"internal/invariant",
	"internal/ladder",
	"internal/background",
	"internal/direct",
	"internal/prefetch",
	"internal/fence",
	"internal/port",
	"internal/await",
	"internal/whole",
	"internal/clock",

	"engine/record",
	"engine/epoch",
	"engine/device/...",
	"engine/index",
	"engine/hlog",
	"engine/hlog/hlogtest",
	"engine/store",

	"fabric",
	"fabric/ring",
	"fabric/frame",
	"fabric/nic",
	"fabric/driver",
	"fabric/fabrictest",
	"fabric/inproc",
	"fabric/shm",
	"fabric/tcp",
	"fabric/verbs",
	"fabric/provider",

	"cluster/view",
	"cluster/meta",
	"cluster/peer",
	"cluster/replica",
	"cluster/coordinator",
	"cluster/group",
	"cluster/txn",
	"cluster/migrate",
	"cluster/balance",

	"tenant/sched",
	"tenant",
	"tenant/extension/wasm",
	"tenant/extension/meter",
	"tenant/extension/...",
	"tenant/library/librarytest",
	"tenant/library",

	"wire",
	"wire/resp",
	"client",
	"sdk/...",
	"examples/functions",

	"server/call",
	"server/session",
	"server/redis",
	"server/admin",
	"server",

	"bench/workload",
	"bench/plot",
	"bench/guest",
	"bench/casestudy",
	"bench",
	"test/...",
	"cmd/ostro",
}

// Strangers are pairs of subtrees that never import each other, although one
// of them stands before the other.
var Strangers = [][2]string{{"engine", "fabric"}}

// Fault is one import that breaks the order, or a package without a rung.
type Fault struct {
	File   string // path within the module
	Import string // the imported package, relative to the module; empty if the file's own package has no rung
	Reason string
}

func (f Fault) String() string {
	if f.Import == "" {
		return fmt.Sprintf("%s: %s", f.File, f.Reason)
	}
	return fmt.Sprintf("%s imports %s: %s", f.File, f.Import, f.Reason)
}

// Check walks the module's files and returns every fault, in path order.
func Check(module fs.FS) ([]Fault, error) {
	var faults []Fault
	err := fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && foreign(module, name):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		found, err := checkFile(module, name)
		faults = append(faults, found...)
		return err
	})
	return faults, err
}

// foreign tells whether a folder holds no code of this module: hidden ones,
// test data, and other modules such as tools.
func foreign(module fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	base := path.Base(dir)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" {
		return true
	}
	_, err := fs.Stat(module, path.Join(dir, "go.mod"))
	return err == nil
}

func checkFile(module fs.FS, name string) ([]Fault, error) {
	source, err := fs.ReadFile(module, name)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
	if err != nil {
		return nil, fmt.Errorf("read the imports of %s: %w", name, err)
	}
	from := path.Dir(name)
	if rungOf(from) < 0 {
		return []Fault{{File: name, Reason: from + " has no rung; give it one in internal/ladder"}}, nil
	}
	var faults []Fault
	for _, spec := range parsed.Imports {
		target, _ := strconv.Unquote(spec.Path.Value)
		to, ours := strings.CutPrefix(target, Module+"/")
		if !ours {
			continue
		}
		if reason := objection(from, to); reason != "" {
			faults = append(faults, Fault{File: name, Import: to, Reason: reason})
		}
	}
	return faults, nil
}

// objection says why package from may not import package to, or nothing.
func objection(from, to string) string {
	for _, pair := range Strangers {
		if within(from, pair[0]) && within(to, pair[1]) || within(from, pair[1]) && within(to, pair[0]) {
			return pair[0] + " and " + pair[1] + " are strangers"
		}
	}
	low, high := rungOf(to), rungOf(from)
	switch {
	case low < 0:
		return to + " has no rung; give it one in internal/ladder"
	case low > high:
		return to + " stands above " + from
	case low == high && from != to && !strings.HasSuffix(Rungs[low], "/..."):
		return to + " stands beside " + from
	}
	return ""
}

// rungOf returns a folder's position in Rungs, or -1.
func rungOf(dir string) int {
	for i, rung := range Rungs {
		tree, open := strings.CutSuffix(rung, "/...")
		if dir == tree || open && within(dir, tree) {
			return i
		}
	}
	return -1
}

// within tells whether dir is tree or lies below it.
func within(dir, tree string) bool {
	return dir == tree || strings.HasPrefix(dir, tree+"/")
}
