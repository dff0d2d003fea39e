package server_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A node that has its name, and not its log, has lost what others have copies of. Its first batches are nowhere any more,
// for they were cleaned.
func TestANodeWithoutItsLogBringsItBackFromItsBackups(t *testing.T) {
	w := newWorld(t)
	w.wide = 1000
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	log, c := filepath.Join(w.dir, "n1", "log"), w.client("n1", "n2", "n3")
	w.write(c, 0, 500)
	first, err := filepath.Glob(filepath.Join(log, "segments", "*.seg"))
	w.must(err)
	// Not any of them in particular: a head that nobody writes to stays open, however old it is.
	w.until("one of its first segments is cleaned", func() bool {
		w.write(c, 0, 500)
		return slices.ContainsFunc(first, func(file string) bool {
			_, err := os.Stat(file)
			return errors.Is(err, fs.ErrNotExist)
		})
	})
	w.drop("n1", "n2", "n3")
	w.must(os.RemoveAll(log))
	w.start("n1", "n2", "n3")
	w.await("that all is served", settled)
	w.check(w.client("n1", "n2", "n3"), 0, 500)
}
