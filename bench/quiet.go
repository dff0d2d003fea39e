package bench

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// machineTime is how the cores of the machine spent their time since it
// started.
type machineTime struct {
	all, busy, stolen time.Duration
	ours              time.Duration // this process and its ended children
}

func readMachineTime() machineTime {
	stat, _ := os.ReadFile("/proc/stat") // zeros say that it is not known
	t := parseMachineTime(stat)
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		_ = unix.Getrusage(who, &u) // cannot fail with these arguments
		t.ours += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return t
}

// parseMachineTime reads the first line: user, nice, system, idle, iowait,
// irq, softirq, steal.
func parseMachineTime(stat []byte) machineTime {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	var t machineTime
	for i, f := range strings.Fields(string(line)) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || i > 8 {
			continue // the word cpu, and guests, who are counted before
		}
		d := time.Duration(n) * clockTick
		t.all += d
		switch i {
		case 4, 5: // idle, waiting for a disk
		case 8:
			t.stolen += d
		default:
			t.busy += d
		}
	}
	return t
}

// Company is how much of the cores others took during a run: figures taken in
// much company are worth little.
type Company struct {
	Others float64    `json:"others"` // share of all cores
	Stolen float64    `json:"stolen"` // by the host of this virtual machine
	Pace   [2]float64 `json:"pace"`   // of a core before the run and after it, in steps a second
}

func (c Company) String() string {
	return fmt.Sprintf("others took %.0f%% of the cores during the run, the host %.0f%%; a core's pace was %.0f million steps/s before it, %.0f after",
		100*c.Others, 100*c.Stolen, c.Pace[0]/1e6, c.Pace[1]/1e6)
}

// pace is how many steps a second a core makes of the time it is given, eight of which need nothing of each other. A core that is
// slowed down, or whose other half somebody uses, makes fewer, and no other figure of the machine tells.
func pace() float64 {
	runtime.LockOSThread() // The thread's time is what counts.
	defer runtime.UnlockOSThread()
	var a, b, c, d, e, f, g, h uint64
	for start, steps := threadTime(), 0; ; {
		for range 1 << 17 {
			a, b, c, d = a+1, b^3, c+5, d^7
			e, f, g, h = e+11, f^13, g+17, h^19
		}
		steps += 8 << 17
		if took := threadTime() - start; took >= 50*time.Millisecond {
			paced.Store(a + b + c + d + e + f + g + h)
			return float64(steps) / took.Seconds()
		}
	}
}

// paced has the compiler believe that the steps are of use.
var paced atomic.Uint64

func threadTime() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now) // cannot fail with these arguments
	return time.Duration(now.Nano())
}

// since compares with an earlier reading.
func (t machineTime) since(before machineTime) Company {
	all := float64(t.all - before.all)
	if all <= 0 {
		return Company{}
	}
	return Company{
		Others: max(0, float64((t.busy-before.busy)-(t.ours-before.ours))/all),
		Stolen: float64(t.stolen-before.stolen) / all,
	}
}

// calmest does a round again for as long as the host took more than is tolerated of the machine meanwhile, so many times at
// the most. Some milliseconds of it are the 99th percentile of a round at a fixed rate. All tries are returned, and which one counts:
// that from which the host took least, whatever its figures, or one after which there are to be no more.
func calmest[R any](tries int, tolerated time.Duration, round func() (r R, stolen time.Duration, last bool, err error)) (all []R, best int, err error) {
	var least time.Duration
	for range tries {
		r, stolen, last, err := round()
		if err != nil {
			return all, best, err
		}
		all = append(all, r)
		if len(all) == 1 || stolen < least || last {
			best, least = len(all)-1, stolen
		}
		if last || stolen <= tolerated {
			break
		}
	}
	return all, best, nil
}
