package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/server"
)

func TestTheDefaultFileIsGoodAsItIsAndWithEverythingSwitchedOn(t *testing.T) {
	text, err := ostro(t, "config", "default")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "ostro.yaml")
	for _, variant := range []string{text, uncommented(text)} {
		if err := os.WriteFile(name, []byte(variant), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := ostro(t, "config", "check", name); err != nil {
			t.Errorf("%s%v in\n%s", out, err, variant)
		}
	}
	loaded, err := server.Load(server.Sources{File: name})
	if err != nil {
		t.Fatal(err)
	}
	want := server.Default()
	for i, s := range want.Settings() {
		if got := loaded.Settings()[i].String(); got != s.String() {
			t.Errorf("%s came back as %q, want %q", s.Key, got, s.String())
		}
		if loaded.Origin[s.Key] == "default" {
			t.Errorf("%s is missing in the file", s.Key)
		}
	}
}

// uncommented switches every setting of the default file on.
func uncommented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "# ") && !strings.HasPrefix(line, "##") {
			lines[i] = line[1:]
		}
	}
	return strings.Join(lines, "\n")
}

func TestShowTellsWhereEachValueComesFrom(t *testing.T) {
	t.Setenv("OSTRO_DATABASES", "3")
	out, err := ostro(t, "config", "show", "--port", "7000", "--requirepass", "hunter2")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"port: 7000", "# --port", "databases: 3", "# OSTRO_DATABASES", "# default"} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "hunter2") {
		t.Error("the password is shown")
	}
}

func TestTheOperationsGuideKnowsEverySetting(t *testing.T) {
	guide, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	config := server.Default()
	for _, key := range config.Keys() {
		if !strings.Contains(string(guide), "`"+key+"`") {
			t.Errorf("docs/operations.md does not mention %s", key)
		}
	}
}
