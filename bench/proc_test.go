package bench

import (
	"os"
	"slices"
	"testing"
	"time"
)

func TestCPUTimeSkipsAProgramNameWithSpacesAndParentheses(t *testing.T) {
	stat := []byte("42 (a) b (c) S 1 42 42 0 -1 4194560 1 0 0 0 150 25 7 7 20 0 3 0 100 0 0")
	if got, err := parseCPUTime(stat); err != nil || got != 1750*time.Millisecond {
		t.Errorf("got %v, %v, want 1.75s", got, err)
	}
	if _, err := parseCPUTime([]byte("42 (a) S 1")); err == nil {
		t.Error("a cut status was accepted")
	}
}

func TestCPUTimeOfThisProcessGrows(t *testing.T) {
	before, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for x := 0; ; x++ {
		if now, err := cpuTime(os.Getpid()); err != nil || now > before {
			return
		}
	}
}

func TestResidentMemoryIsReadFromItsFields(t *testing.T) {
	got := parseResident("Name:\tx\nVmRSS:\t  100 kB\nRssAnon:\t  60 kB\nRssFile:\t  30 kB\nRssShmem:\t  10 kB\n")
	if want := (resident{100 << 10, 60 << 10, 30 << 10, 10 << 10}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestACoreHasAPace(t *testing.T) {
	if got := pace(); got < 1e6 || got > 1e12 {
		t.Errorf("%.0f steps a second", got)
	}
}

func TestCompanyIsWhatOthersTook(t *testing.T) {
	before := parseMachineTime([]byte("cpu  100 0 50 800 10 0 0 40 7 7\ncpu0 1 1 1\n"))
	after := parseMachineTime([]byte("cpu  150 0 80 810 10 0 0 50 9 9\n"))
	after.ours += 30 * clockTick
	got := after.since(before)
	if got.Others != 0.5 || got.Stolen != 0.1 {
		t.Errorf("got %+v, want half by others and a tenth stolen", got)
	}
	if (before.since(before) != Company{}) {
		t.Error("no time gave some company")
	}
}

func TestTheCalmestTryCounts(t *testing.T) {
	for name, c := range map[string]struct {
		stolen []time.Duration
		last   int // after which there are to be no more; 0 for none
		want   []int
		best   int
	}{
		"calm at once":              {[]time.Duration{1, 0}, 0, []int{0}, 0},
		"calm at last":              {[]time.Duration{5, 4, 1, 0}, 0, []int{0, 1, 2}, 2},
		"never calm":                {[]time.Duration{5, 3, 4, 9, 0}, 0, []int{0, 1, 2, 3}, 1},
		"the last whatever it lost": {[]time.Duration{5, 9, 0}, 2, []int{0, 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			all, best, err := calmest(4, 1, func() (int, time.Duration, bool, error) {
				n++
				return n - 1, c.stolen[n-1], n == c.last, nil
			})
			if err != nil || !slices.Equal(all, c.want) || best != c.best {
				t.Errorf("tries %v, the %d. counts, %v; want %v and %d", all, best, err, c.want, c.best)
			}
		})
	}
}
