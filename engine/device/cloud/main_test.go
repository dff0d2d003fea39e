package cloud_test

import (
	"testing"

	"go.uber.org/goleak"
)

// The tests fail if goroutines are left. One is the library's own, from the import
// on.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
