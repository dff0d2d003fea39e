package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/tenant/library/librarytest"
)

func TestFunctionsAreInstalledListedAndDeletedFromTheCommandLine(t *testing.T) {
	t.Setenv("REDISCLI_AUTH", "operator")
	dir := t.TempDir()
	p := serve(t, dir, "--requirepass", "operator")
	fn := func(args ...string) outcome {
		t.Helper()
		return run(t, "", append(append([]string{"fn"}, args...), "-p", p.port)...)
	}
	module := func(text string, functions ...string) string {
		path := filepath.Join(t.TempDir(), "my-tree.wasm")
		if err := os.WriteFile(path, librarytest.Module(text, functions...), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run(t, "rose\n", "tenant", "create", "shop", "--password", "-", "-p", p.port).wants(t, 0, "tenant shop is there")
	fn("list").wants(t, 0, "default has no functions")
	fn("install", module("one", "walk", "count"), "--tenant", "shop").wants(t, 0, "module my_tree of shop is installed", "count, walk")
	fn("install", module("two", "walk"), "--tenant", "shop", "--replace=false").wants(t, 1, "already exists")
	fn("install", module("two", "walk"), "--tenant", "shop").wants(t, 0, "is replaced: version 2")
	fn("install", module("one", "f"), "--name", "mine", "--json").wants(t, 0, `"version": 1`)
	fn("install", module("one", "g"), "--name", "not so").wants(t, 2, "--name")
	fn("install", module("one"), "--name", "empty").wants(t, 1, "exports no function")
	fn("install", module("one", "walk"), "--tenant", "nobody").wants(t, 1, "there is no tenant nobody")
	fn("install", "nothing.wasm").wants(t, 2, "does not exist")
	if o := fn("list"); !strings.Contains(o.stdout, "mine") || strings.Contains(o.stdout, "my_tree") {
		t.Errorf("the operator has\n%s", o.stdout)
	}
	p.Kill()
	p = serve(t, dir, "--requirepass", "operator")
	var entries []library.Entry
	o := fn("list", "--tenant", "shop", "--json")
	if err := json.Unmarshal([]byte(o.stdout), &entries); err != nil || len(entries) != 1 || entries[0].Version != 2 || entries[0].Sum != library.SumOf(librarytest.Module("two", "walk")) {
		t.Errorf("after a kill %+v, %v\n%s", entries, err, o.stderr)
	}
	fn("stats", "--tenant", "shop").wants(t, 0, "CALLS", "walk")
	fn("describe", "my_tree", "--tenant", "shop").wants(t, 0, "my_tree of shop, version 2", "SHA-256 "+entries[0].Sum.String(), "walk", "CALLS")
	fn("describe", "my_tree", "--tenant", "shop", "--json").wants(t, 0, `"version": 2`, `"tenant": "shop"`, `"usage"`)
	fn("describe", "my_tree").wants(t, 1, "default has no module", "no file of that name")
	fn("describe", "my_tree.wasm").wants(t, 2, "does not exist")
	fn("stats", "nothing").wants(t, 1, "no module", "ostro fn list")
	fn("logs", "mine").wants(t, 0)
	fn("logs", "nothing").wants(t, 1, "no module", "ostro fn list")
	fn("logs", "mine", "--level", "loud").wants(t, 2, "levels are")
	fn("delete", "my_tree").wants(t, 1, "no module")
	fn("delete", "my_tree", "--tenant", "shop").wants(t, 0, "is gone")
	t.Setenv("REDISCLI_AUTH", "rose")
	fn("install", module("three", "walk"), "--user", "shop").wants(t, 0, "module my_tree of shop is installed")
	fn("list", "--user", "shop").wants(t, 0, "my_tree")
	fn("list", "--user", "shop", "--tenant", "shop").wants(t, 1, "NOPERM")
}
