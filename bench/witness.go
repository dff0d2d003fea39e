package bench

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// witness sees when cores stand still, as those of a virtual machine do when its host has other plans. What the host says that it took is told
// in hundredths of a second; a thousandth of the requests of a second wait as long as a stop of one or two milliseconds.
//
// On each core a thread that goes before all others sleeps for a moment, again and again, and looks how long that was. For as long as it was
// awake and waited for the core the kernel had that for itself, perhaps for those who are measured: this is no stop. Where it may not go
// before others it would see their work, so there is no witness.
type witness struct {
	over    atomic.Bool
	threads sync.WaitGroup
	procs   int

	mu    sync.Mutex
	tids  []int // of its threads
	stops []coreStop
}

// coreStop is a time in which a core did nothing.
type coreStop struct {
	core     int
	from, to time.Time
}

const (
	witnessSleep = time.Millisecond
	// witnessed is how late one wakes up if its core stood still.
	witnessed = time.Millisecond
)

// newWitness begins to look at the cores that this thread may have. The caller ends it; nil: it may not go before others, or the kernel does not tell who waits.
func newWitness() *witness {
	var cores unix.CPUSet
	if unix.SchedGetaffinity(0, &cores) != nil {
		return nil
	}
	w := &witness{procs: runtime.GOMAXPROCS(0)}
	runtime.GOMAXPROCS(w.procs + cores.Count()) // Those who sleep keep theirs.
	ready := make(chan bool, cores.Count())
	for core, n := 0, cores.Count(); n > 0; core++ {
		if cores.IsSet(core) {
			n--
			w.threads.Go(func() { w.look(core, &cores, ready) })
		}
	}
	all := true
	for range cores.Count() {
		all = <-ready && all
	}
	if !all {
		w.end()
		return nil
	}
	return w
}

// look is one core's. Its thread is as it was afterwards, and lives on: it may be the one that has started a process which is to end with its parent,
// and to the kernel that is the thread.
func (w *witness) look(core int, all *unix.CPUSet, ready chan<- bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		ready <- false
		return
	}
	defer func() { _ = errors.Join(unix.SchedSetAttr(0, before, 0), unix.SchedSetaffinity(0, all)) }()
	waits, err := os.Open("/proc/thread-self/schedstat")
	if err != nil {
		ready <- false
		return
	}
	defer waits.Close()
	if !goFirst(core) {
		ready <- false
		return
	}
	w.mu.Lock()
	w.tids = append(w.tids, unix.Gettid())
	w.mu.Unlock()
	ready <- true
	w.sleep(core, waits)
}

// goFirst has this thread go before all others, on one core.
func goFirst(core int) bool {
	var only unix.CPUSet
	only.Set(core)
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedFIFO, Priority: 1}
	return unix.SchedSetaffinity(0, &only) == nil && unix.SchedSetAttr(0, &first, 0) == nil
}

// sleep sleeps until the end, and notes each time that was too long; waits is the thread's schedstat.
func (w *witness) sleep(core int, waits *os.File) {
	moment := unix.NsecToTimespec(int64(witnessSleep))
	for last, waited := time.Now(), waitedFor(waits); !w.over.Load(); {
		_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&moment)), 0, 0) // As waitNanos.
		now, sum := time.Now(), waitedFor(waits)
		if stop := now.Sub(last) - witnessSleep - (sum - waited); stop >= witnessed {
			w.note(coreStop{core, now.Add(-stop), now})
		}
		last, waited = now, sum
	}
}

// waitedFor is for how long a thread has waited for a core while it was awake, by its schedstat.
func waitedFor(schedstat *os.File) time.Duration {
	var buf [64]byte
	n, _ := unix.Pread(int(schedstat.Fd()), buf[:], 0)
	fields := strings.Fields(string(buf[:n]))
	if len(fields) < 2 {
		return 0
	}
	ns, _ := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(ns)
}

func (w *witness) note(s coreStop) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stops = append(w.stops, s)
}

// end stops looking. Nil has seen nothing.
func (w *witness) end() {
	if w == nil {
		return
	}
	w.over.Store(true)
	w.threads.Wait()
	runtime.GOMAXPROCS(w.procs)
}

// longest is the longest stop of a core in some time.
func (w *witness) longest(from, to time.Time) (d time.Duration) {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.stops {
		if s.from.Before(to) && s.to.After(from) {
			d = max(d, s.to.Sub(s.from))
		}
	}
	return d
}
