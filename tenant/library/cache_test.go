package library

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/tenant/library/librarytest"
)

// compiled is what the compiler has written to a cache: a file for each module, another one if it is compiled again.
func compiled(t *testing.T, dir string) map[string]uint64 {
	t.Helper()
	files := map[string]uint64{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return unlessGone(err)
		}
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			return unlessGone(err)
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

// unlessGone is err, unless that is of a file that the library has just removed, as it does now and then.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func bytesOf(t *testing.T, dir string) (sum int64) {
	t.Helper()
	for path := range compiled(t, dir) {
		info, err := os.Stat(path)
		if must(t, unlessGone(err)); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

func TestWhatWasReplacedOrDeletedLeavesTheCacheWhileTheServerRuns(t *testing.T) {
	cache := t.TempDir()
	var told atomic.Int64
	l := openLibrary(t, t.TempDir(), func(o *Options) {
		o.CacheDir, o.TrimBytes = cache, 1<<20
		o.Keep = func(installed func(Sum) bool) {
			if installed(SumOf(librarytest.Module("kept", "f"))) {
				told.Add(1)
			}
		}
	})
	install(t, l.Shelf(nil), "kept", librarytest.Module("kept", "f"))
	kept := compiled(t, cache)
	anna := l.shelf(7, "anna")
	const versions, version = 12, 600_000
	for i := range versions {
		text := strings.Repeat(string(rune('a'+i)), version)
		if _, err := anna.Install(t.Context(), Package{"much", librarytest.Module(text, "g")}, true); err != nil {
			t.Fatal(err)
		}
		l.tend(l.tick.Add(1)) // What was replaced is in use until then.
		l.trimGrown()
		if sum := bytesOf(t, cache); sum > 5*version {
			t.Fatalf("after %d versions of %d bytes the cache has %d", i+1, version, sum)
		}
	}
	if told.Load() == 0 {
		t.Error("who has copies of code was not told what is installed")
	}
	trimmed := func(enough func(map[string]uint64) bool) func() bool {
		return func() bool { // The library may be at closing what is not in use any more.
			l.tend(l.tick.Add(1))
			l.trimCache()
			return enough(compiled(t, cache))
		}
	}
	await.True(t, "the cache has the files of two modules", trimmed(func(now map[string]uint64) bool { return len(now) == len(kept)+2 }))
	must(t, anna.Delete(t.Context(), "much"))
	await.True(t, "after a deletion the cache is as it was before", trimmed(func(now map[string]uint64) bool { return maps.Equal(now, kept) }))
}

func TestModulesThatAreRefusedLeaveTheCache(t *testing.T) {
	cache := t.TempDir()
	l := openLibrary(t, t.TempDir(), func(o *Options) {
		o.CacheDir, o.TrimBytes = cache, 1<<20
	})
	install(t, l.Shelf(nil), "kept", librarytest.Module("kept", "f"))
	for i := range 5 {
		text := strings.Repeat(string(rune('a'+i)), 600_000)
		if _, err := l.Shelf(nil).Install(t.Context(), Package{"other", librarytest.Module(text, "f")}, true); err == nil {
			t.Fatal("two modules have a function of the same name")
		}
	}
	await.True(t, "of modules that were refused the cache has little", func() bool {
		l.tend(l.tick.Add(1))
		l.trimGrown()
		return bytesOf(t, cache) <= 1<<20+700_000 // As much may come before it is looked again.
	})
}

func TestATrimmedCacheServesTheNextStart(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	open := func() *Library { return openLibrary(t, dir, func(o *Options) { o.CacheDir = cache }) }
	first := open()
	install(t, first.Shelf(nil), "one", librarytest.Module("1", "f"))
	first.trimCache()
	first.Close()
	before := compiled(t, cache)
	unfinished := filepath.Join(cache, "rewritten", "new-1")
	must(t, os.WriteFile(unfinished, []byte("half"), 0o600))
	again := open()
	mustCall(t, again.Shelf(nil), "f", "1")
	again.trimCache()
	now := compiled(t, cache)
	if now[unfinished] == 0 {
		t.Error("what somebody may be writing is removed")
	}
	long := time.Now().Add(-2 * time.Hour)
	must(t, os.Chtimes(unfinished, long, long))
	again.trimCache()
	if now := compiled(t, cache); !maps.Equal(now, before) {
		t.Errorf("after a restart the cache has %v instead of %v", now, before)
	}
}
