package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/test/harness"
)

var (
	killsFlag   = flag.Int64("kills", setting("OSTRO_TORTURE_KILLS", 0), "stop after so many kills; 30 if there is no other bound")
	minutesFlag = flag.Int64("minutes", setting("OSTRO_TORTURE_MINUTES", 0), "stop after so many minutes")
	seedFlag    = flag.Int64("seed", setting("OSTRO_TORTURE_SEED", 0), "0: a new one each time")
	lifeFlag    = flag.String("life", os.Getenv("OSTRO_TORTURE_LIFE"), "only lives of this name")
)

// setting reads a number from the environment.
func setting(name string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// binary is the program under test, and scratch a directory on a real disk.
var binary, scratch string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if binary = os.Getenv(insideVar); binary != "" {
		return await.Run(m)
	}
	dir, err := harness.ScratchDir("ostro-crash-")
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

// seedOf gives the seed of this run, and says how to repeat it.
func seedOf(t *testing.T) int64 {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Int64N(1e9) + 1
	}
	t.Logf("seed: OSTRO_TORTURE_SEED=%d", seed)
	return seed
}

// budget says how much there is to do.
type budget struct {
	kills int64
	until time.Time
}

func newBudget() budget {
	b := budget{kills: *killsFlag, until: time.Now().Add(1000 * time.Hour)}
	switch {
	case *minutesFlag > 0 && b.kills == 0:
		b.kills = 1 << 40
		fallthrough
	case *minutesFlag > 0:
		b.until = time.Now().Add(time.Duration(*minutesFlag) * time.Minute)
	case b.kills == 0:
		b.kills = 30
	}
	return b
}

func (b *budget) left() bool { return b.kills > 0 && time.Now().Before(b.until) }
