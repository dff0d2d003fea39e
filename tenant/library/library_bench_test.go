package library

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/tenant/library/librarytest"
)

// BenchmarkFirstCallAfterARestart is from the call to the answer, with compiled code in the cache.
func BenchmarkFirstCallAfterARestart(b *testing.B) {
	for _, example := range []string{"aggregate", "rank", "tao"} {
		b.Run(example, func(b *testing.B) {
			dir := b.TempDir()
			first := openLibrary(b, dir, nil)
			e := install(b, first.Shelf(nil), "m", readExample(b, example))
			first.Close()
			for b.Loop() {
				b.StopTimer()
				l := openLibrary(b, dir, nil)
				s := l.Shelf(nil)
				b.StartTimer()
				_, _ = call(s, e.Functions[0]) // It may want other arguments: it has run.
				b.StopTimer()
				l.Close()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkInstalledModules tells what modules cost that are installed, and those that are compiled.
func BenchmarkInstalledModules(b *testing.B) {
	const tenants, each = 1024, 2
	for b.Loop() {
		l := openLibrary(b, b.TempDir(), func(o *Options) { o.Warm = 1 << 20 })
		before := resident()
		for i := range tenants * each {
			s := l.shelf(Owner(70000+i%tenants), fmt.Sprint("tenant", i%tenants))
			install(b, s, fmt.Sprint("m", i), librarytest.Module(fmt.Sprint("answer", i), fmt.Sprint("f", i)))
		}
		warm := resident()
		l.tend(l.tick.Add(1 << 20))
		l.tend(l.tick.Add(1))
		cold := resident()
		b.ReportMetric(float64(warm-before)/(tenants*each), "B/compiled")
		b.ReportMetric(float64(cold-before)/(tenants*each), "B/installed")
		l.Close()
	}
}

// resident is how many bytes of memory the process has, after a collection.
func resident() int {
	runtime.GC()
	debug.FreeOSMemory() // Finalizers of the first one have freed what the second gives back.
	text, _ := os.ReadFile("/proc/self/statm")
	pages, _ := strconv.Atoi(strings.Fields(string(text))[1])
	return pages * os.Getpagesize()
}
