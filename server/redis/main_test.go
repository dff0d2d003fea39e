package redis_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ostrodb/ostro/internal/await"
)

// TestMain fails if any test leaves a goroutine or a file descriptor behind.
func TestMain(m *testing.M) {
	before := openFiles()
	code := await.Run(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		if after := openFiles(); after > before+2 { // the runtime's own poller and what wakes it
			fmt.Fprintf(os.Stderr, "%d descriptors open before the tests, %d after\n", before, after)
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
