package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/sdk"
)

func TestFnNewWritesAFolderAndSaysHowToGoOn(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, l := range sdk.Languages() {
		out, err := ostro(t, "fn", "new", "greeter", "--lang", l.Name, "--dir", "in_"+l.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"in_" + l.Name, l.Install, "make", "ostro fn run greeter.wasm --fn hello --args world"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in %q", l.Name, want, out)
			}
		}
	}
	if _, err := ostro(t, "fn", "new", "greeter"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join("greeter", "src", "lib.rs")); err != nil {
		t.Errorf("without flags it is Rust, in a folder of its name: %v", err)
	}
}

func TestFnNewRefusesWithAdvice(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := ostro(t, "fn", "new", "greeter"); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"fn new":                       "takes a name",
		"fn new greeter":               "greeter: the folder is not empty",
		"fn new other --lang ruts":     `did you mean "rust"?`,
		"fn new other --lang pascal77": "languages are rust, c, as, go",
		"fn new Other":                 "small letters",
	} {
		_, err := ostro(t, strings.Fields(line)...)
		if exitCode(err) != exitUsage || !strings.Contains(said(err), want) {
			t.Errorf("ostro %s: exit %d, said %q, want %q", line, exitCode(err), said(err), want)
		}
	}
}
