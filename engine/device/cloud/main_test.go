package cloud_test

import (
	"os"
	"testing"

	"github.com/ostrodb/ostro/internal/await"
)

// The tests fail if goroutines are left: connections end with the servers of the
// tests.
func TestMain(m *testing.M) {
	os.Exit(await.RunToEnd(m))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
