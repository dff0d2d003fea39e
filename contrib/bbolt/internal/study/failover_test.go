package study

import (
	"flag"
	"os"
	"testing"

	"github.com/ostrodb/ostro/bench/casestudy"
)

var kills = flag.Int("kills", 6, "how often the front end is killed")

func TestMain(m *testing.M) {
	casestudy.Main(Study())
	flag.Parse()
	os.Exit(m.Run())
}

func TestNothingAcknowledgedIsMissingWhenTheFrontEndIsKilled(t *testing.T) {
	casestudy.Failover(t, Study(), *kills)
}
