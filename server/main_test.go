package server_test

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/ostrodb/ostro/internal/await"
)

// TestMain runs three tests of clusters at a time, if it is not told how many: on two cores they wait more than they work.
func TestMain(m *testing.M) {
	flag.Parse()
	told := false
	flag.Visit(func(f *flag.Flag) { told = told || f.Name == "test.parallel" })
	if !told {
		_ = flag.Set("test.parallel", strconv.Itoa(max(3, runtime.GOMAXPROCS(0))))
	}
	code := await.Run(m)
	if etcdDir != "" {
		etcd().Close()
		_ = os.RemoveAll(etcdDir)
	}
	os.Exit(code)
}
