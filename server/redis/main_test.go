package redis_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/ostrodb/ostro/internal/await"
)

// TestMain fails if any test leaves a goroutine or a file descriptor behind.
func TestMain(m *testing.M) {
	before := openFiles()
	code := await.RunToEnd(m)
	if code == 0 {
		// Two more are the runtime's own poller and what wakes it. The system may take a moment to close the last.
		if !await.Comes(func() bool { return openFiles() <= before+2 }) {
			fmt.Fprintf(os.Stderr, "%d descriptors open before the tests, %d after\n", before, openFiles())
			code = 1
		}
	}
	os.Exit(code)
}

func openFiles() int {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(files)
}
