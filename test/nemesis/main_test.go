package nemesis

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/test/harness"
)

var seedFlag = flag.Uint64("seed", uint64(setting("OSTRO_TORTURE_SEED", 0)), "0: a new one each time")

// setting reads a number from the environment.
func setting(name string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// binary is the program under test, and scratch a directory on a real disk.
var binary, scratch string

// Where they are, for a test that runs itself again.
const (
	binaryVar  = "OSTRO_NEMESIS_BINARY"
	scratchVar = "OSTRO_NEMESIS_SCRATCH"
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if binary = os.Getenv(binaryVar); binary != "" {
		scratch = os.Getenv(scratchVar)
		return await.Run(m)
	}
	dir, err := harness.ScratchDir("ostro-nemesis-")
	if err == nil {
		scratch = dir
		binary, err = harness.Build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := await.Run(m)
	if code == 0 {
		_ = os.RemoveAll(dir)
	}
	return code
}

// isolated is harness.Isolated with what tests here need.
func isolated(t *testing.T, seed uint64) bool {
	t.Helper()
	return harness.Isolated(t, binaryVar+"="+binary, scratchVar+"="+scratch, fmt.Sprintf("OSTRO_TORTURE_SEED=%d", seed))
}

// seedOf gives the seed of this run, and says how to repeat it.
func seedOf(t *testing.T) uint64 {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64N(1e9) + 1
	}
	t.Logf("seed: OSTRO_TORTURE_SEED=%d", seed)
	return seed
}
