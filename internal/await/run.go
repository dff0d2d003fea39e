package await

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.uber.org/goleak"
)

// Tests are those of a package, as a testing.M.
type Tests interface{ Run() int }

// RunToEnd is Run, and fails if tests that pass leave goroutines behind. One that has said that it is done runs on for
// a moment, and if its priority is low and the machine is busy, for longer than goleak alone would wait.
func RunToEnd(m Tests) int {
	code := Run(m)
	if code != 0 {
		return code
	}
	if err := leftAfter(func() error { return goleak.Find() }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// leftAfter is what find finds in the end.
func leftAfter(find func() error) (err error) {
	Comes(func() bool { err = find(); return err == nil })
	return err
}

// Run runs tests as m does. Shortly before -timeout it says which of them do not end, and gives up.
//
// At the timeout itself testing prints all goroutines, of which a test of clusters has thousands, and first of all the
// names of the tests: whoever keeps the end of the output does not learn which it was.
func Run(m Tests) int {
	flag.Parse()
	limit, _ := flag.Lookup("test.timeout").Value.(flag.Getter).Get().(time.Duration)
	if limit <= 0 {
		return m.Run()
	}
	limit -= limit / 20
	defer time.AfterFunc(limit, func() {
		fmt.Fprintf(os.Stderr, "\n%s\nThese tests had not ended after %s.\nFAIL\n", hanging(stacks()), limit)
		os.Exit(1)
	}).Stop()
	return m.Run()
}

// stacks are those of all goroutines.
func stacks() string {
	for size := 1 << 20; ; size *= 2 {
		b := make([]byte, size)
		if n := runtime.Stack(b, true); n < size {
			return string(b[:n])
		}
	}
}

// ours is how the names of this module's functions begin.
const ours = "github.com/ostrodb/ostro/"

// hanging tells what there is of goroutines in code of this module: how many are where, and of tests everything, last.
func hanging(stacks string) string {
	counts := map[string]int{}
	var tests []string
	for text := range strings.SplitSeq(stacks, "\n\n") {
		frames := own(text)
		switch {
		case len(frames) == 0, strings.Contains(text, "\ntesting.(*T).Run("), strings.Contains(text, "\ntesting.(*T).Parallel("):
			// It is others', has begun a test that has not ended, or has not begun.
		case strings.Contains(text, "\ntesting.tRunner("):
			title, _, _ := strings.Cut(text, "\n")
			tests = append(tests, title+"\n"+strings.Join(frames, "\n"))
		default:
			counts[frames[0]]++
		}
	}
	var said strings.Builder
	most := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	for _, frame := range most[:min(40, len(most))] {
		fmt.Fprintf(&said, "%5d goroutines at %s\n", counts[frame], frame)
	}
	return said.String() + "\n" + strings.Join(tests, "\n\n")
}

// own returns the calls of this module's functions in a stack, each with its place.
func own(stack string) (frames []string) {
	lines := strings.Split(stack, "\n")
	for i := 1; i+1 < len(lines); i++ {
		if strings.HasPrefix(lines[i], ours) {
			call := lines[i][:strings.LastIndex(lines[i], "(")] // without the bits of its arguments
			place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
			frames = append(frames, strings.TrimPrefix(call, ours)+" "+place)
		}
	}
	return frames
}
