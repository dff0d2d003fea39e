package sdk_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/sdk"
)

func TestEveryLanguageHasItsFunctionSDKMakefileAndReadme(t *testing.T) {
	for _, l := range sdk.Languages() {
		dir := filepath.Join(t.TempDir(), "deep", "greeter")
		written, err := sdk.New(dir, "greeter", l)
		if err != nil {
			t.Fatal(l.Name, err)
		}
		source := strings.ReplaceAll(l.Source, "NAME", "greeter")
		for _, want := range []string{"README.md", "Makefile", source} {
			if !slices.Contains(written, want) {
				t.Errorf("%s lacks %s: %v", l.Name, want, written)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, l.SDK)); err != nil {
			t.Errorf("%s lacks its SDK: %v", l.Name, err)
		}
		for _, name := range written {
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(content), "{{.") || strings.Contains(name, "NAME") || strings.HasSuffix(name, ".tmpl") {
				t.Errorf("%s: %s is not filled in", l.Name, name)
			}
		}
	}
}

func TestNewOverwritesNothing(t *testing.T) {
	l, _ := sdk.Find("c")
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious.c")
	if err := os.WriteFile(precious, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := sdk.New(dir, "precious", l); !errors.Is(err, sdk.ErrNotEmpty) {
		t.Fatalf("a folder with files: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d files, %v", len(entries), err)
	}
}

func TestNamesThatNoModuleCanHaveAreRefused(t *testing.T) {
	l, _ := sdk.Find("c")
	for _, name := range []string{"", "Greeter", "1st", "a-b", "a/b", "../a", "ostro", "a b", strings.Repeat("a", 65)} {
		dir := filepath.Join(t.TempDir(), "new")
		if _, err := sdk.New(dir, name, l); !errors.Is(err, sdk.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%q: something was written", name)
		}
	}
}
