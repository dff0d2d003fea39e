package library

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/tenant/library/librarytest"
)

// compiled is what the compiler has written to a cache: a file for each module, another one if it is compiled again.
func compiled(t *testing.T, dir string) map[string]uint64 {
	t.Helper()
	files := map[string]uint64{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			return err
		}
		files[path] = st.Ino
		return nil
	}))
	return files
}

func TestARestartCompilesNothingAgain(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	open := func() *Library { return openLibrary(t, dir, func(o *Options) { o.CacheDir = cache }) }
	first := open()
	install(t, first.Shelf(nil), "one", librarytest.Module("1", "f"))
	install(t, first.shelf(7, "anna"), "two", librarytest.Module("2", "g"))
	first.Close()
	before := compiled(t, cache)
	if len(before) < 2 {
		t.Fatalf("the compiler keeps %d files of two modules", len(before))
	}
	for range 2 {
		again := open()
		mustCall(t, again.Shelf(nil), "f", "1")
		mustCall(t, again.shelf(7, "anna"), "g", "2")
		again.Close()
		if now := compiled(t, cache); !maps.Equal(now, before) {
			t.Fatalf("after a restart the cache has %d files, some of them new, instead of the same %d", len(now), len(before))
		}
	}
	// That would show: what is missing is compiled, and written again.
	for _, path := range slices.Sorted(maps.Keys(before)) {
		must(t, os.Remove(path))
	}
	again := open()
	mustCall(t, again.Shelf(nil), "f", "1")
	again.Close()
	if len(compiled(t, cache)) == 0 {
		t.Error("a module was compiled, and nothing is in the cache")
	}
}
