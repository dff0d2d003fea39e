package whole_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ostrodb/ostro/internal/whole"
)

func TestAFileIsReplacedAndNothingElseStays(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "book")
	for _, text := range []string{"first, and longer", "second"} {
		if err := whole.Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Fatalf("%q, %v; want %q", got, err, text)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
}

func TestAFileThatCannotBeWrittenStaysAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book")
	if err := whole.Write(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+whole.Suffix, 0o700); err != nil { // The new one has no place.
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path+whole.Suffix, "in the way"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := whole.Write(path, []byte("second")); err == nil {
		t.Fatal("it was written")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "first" {
		t.Fatalf("%q, %v", got, err)
	}
}
