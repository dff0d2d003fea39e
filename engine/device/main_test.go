package device_test

import (
	"os"
	"testing"

	"github.com/ostrodb/ostro/internal/await"
)

// roleVariable makes this binary another process of a test instead of a test.
const roleVariable = "OSTRO_DEVICE_TEST_ROLE"

var roles = map[string]func(args []string){}

func TestMain(m *testing.M) {
	if role, ok := roles[os.Getenv(roleVariable)]; ok {
		role(os.Args[1:])
		os.Exit(0)
	}
	os.Exit(await.RunToEnd(m))
}
