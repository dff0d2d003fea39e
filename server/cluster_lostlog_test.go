package server_test

import (
	"os"
	"path/filepath"
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
	oldest := func() string {
		files, err := filepath.Glob(filepath.Join(log, "segments", "*.seg"))
		w.must(err)
		return files[0]
	}
	for first := oldest(); oldest() == first; {
		w.write(c, 0, 500)
	}
	w.drop("n1", "n2", "n3")
	w.must(os.RemoveAll(log))
	w.start("n1", "n2", "n3")
	w.await("that all is served", settled)
	w.check(w.client("n1", "n2", "n3"), 0, 500)
}
