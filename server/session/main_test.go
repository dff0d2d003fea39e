package session_test

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
		if !await.Comes(func() bool { return len(openFiles()) <= len(before)+2 }) {
			fmt.Fprintf(os.Stderr, "open before the tests: %v, after: %v\n", before, openFiles())
			code = 1
		}
	}
	os.Exit(code)
}

// openFiles lists what the process has open, but for the list itself.
func openFiles() (open []string) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	for _, f := range files {
		if name, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil {
			open = append(open, name)
		}
	}
	return open
}
