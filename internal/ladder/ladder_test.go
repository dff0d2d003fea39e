package ladder

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

func TestEveryPackageImportsOnlyWhatStandsBeforeIt(t *testing.T) {
	faults, err := Check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

func TestTheDocsListEveryRungInOrder(t *testing.T) {
	doc, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "## The rungs")
	for _, rung := range Rungs {
		name := "`" + rung + "`"
		_, after, found := strings.Cut(rest, name)
		if !found {
			t.Fatalf("docs/architecture.md lacks %s, or has it at another place", rung)
		}
		rest = after
	}
}

func TestCheckFindsEachKindOfFault(t *testing.T) {
	file := func(imports string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("package p\nimport \"" + imports + "\"\n")}
	}
	for _, c := range []struct {
		name, path, imports string
		want                string
	}{
		{"a lower rung", "server/redis/a.go", Module + "/engine/store", ""},
		{"the standard library", "engine/record/a.go", "os", ""},
		{"a sibling under an open rung", "test/e2e/a.go", Module + "/test/harness", ""},
		{"a test of the package itself", "engine/index/a_test.go", Module + "/engine/index", ""},
		{"a higher rung", "engine/record/a.go", Module + "/engine/store", "engine/record/a.go imports engine/store: engine/store stands above engine/record"},
		{"a higher rung from a test", "wire/resp/a_test.go", Module + "/server", "wire/resp/a_test.go imports server: server stands above wire/resp"},
		{"a stranger", "fabric/tcp/a.go", Module + "/engine/record", "fabric/tcp/a.go imports engine/record: engine and fabric are strangers"},
		{"an import without a rung", "server/a.go", Module + "/util", "server/a.go imports util: util has no rung; give it one in internal/ladder"},
		{"a package without a rung", "common/a.go", "os", "common/a.go: common has no rung; give it one in internal/ladder"},
		{"test data", "server/testdata/a.go", Module + "/cmd/ostro", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			faults, err := Check(fstest.MapFS{c.path: file(c.imports)})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range faults {
				got += f.String()
			}
			if got != c.want {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnotherModuleBelowIsLeftAlone(t *testing.T) {
	faults, err := Check(fstest.MapFS{
		"tools/go.mod":     {Data: []byte("module x")},
		"tools/deep/it.go": {Data: []byte("package deep")},
	})
	if err != nil || len(faults) != 0 {
		t.Fatalf("got %v, %v", faults, err)
	}
}
