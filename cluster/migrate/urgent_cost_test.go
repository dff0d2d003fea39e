package migrate

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
)

// BenchmarkPriorityPull is what keys cost that are waited for together: processor time of both nodes, each a process, from the
// operation that finds a key missing to the one that finds it. The door waits as a network loop does, and a while passes
// between two pulls, so that all who take part in one have gone to sleep before the next. Keys wait each for itself, or together, as
// those do that a loop misses in one batch.
func BenchmarkPriorityPull(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(4, runtime.NumCPU())))
	if os.Getenv(sourceProcess) != "" {
		beSource(b)
		return
	}
	source := startSource(b)
	for _, c := range []struct {
		name          string
		waiting, keys int
	}{{"1 waiting", 1, 1}, {"8 waiting", 8, 1}, {"8 together", 1, 8}} {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			door, keys := newDoor(b, c.waiting, c.keys), c.waiting*c.keys
			var p *pulls
			var here, there time.Duration
			next, asks := sourceRecords, int64(0)
			for b.Loop() {
				if next+keys > sourceRecords {
					b.StopTimer()
					p = pullsFrom(b, source.addr, source.ceiling, 20<<10, 1, givenAway)
					door.open(p.m.o.Store)
					door.readAll(0) // It connects.
					next = keys
					b.StartTimer()
				}
				hereBefore, thereBefore, asksBefore := processorTime(b, 0), processorTime(b, source.pid), p.m.asks.Load()
				napFor(300 * time.Microsecond)
				door.readAll(next)
				here, there = here+processorTime(b, 0)-hereBefore, there+processorTime(b, source.pid)-thereBefore
				asks += p.m.asks.Load() - asksBefore
				next += keys
			}
			perPull := func(n float64, unit string) { b.ReportMetric(n/float64(b.N), unit) }
			perPull(here.Seconds()*1e6, "target-µs/pull")
			perPull(there.Seconds()*1e6, "source-µs/pull")
			perPull(float64(asks), "calls/pull")
		})
	}
}

// givenAway is the migration of all that a source of its own process has.
var givenAway = meta.Migration{ID: 1, Source: "source", Target: "target", Ranges: view.RangesOf(view.Whole), Stage: meta.Moving}

const (
	sourceRecords = 40_000
	sourceProcess = "OSTRO_TEST_SOURCE"
)

// separate is a source in a process of its own.
type separate struct {
	pid     int
	addr    string
	ceiling uint64
}

// startSource runs this benchmark in another process, as a source, until it ends here.
func startSource(b *testing.B) (s separate) {
	cmd := exec.Command(os.Args[0], "-test.run=^$", "-test.bench=^"+b.Name()+"$", "-test.benchtime=1x")
	cmd.Env = append(os.Environ(), sourceProcess+"=yes")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	check(b, err)
	out, err := cmd.StdoutPipe()
	check(b, err)
	check(b, cmd.Start())
	b.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		check(b, cmd.Wait())
	})
	s.pid = cmd.Process.Pid
	said := bufio.NewScanner(out)
	for s.addr == "" && said.Scan() {
		_, _ = fmt.Sscanf(said.Text(), sourceSays, &s.addr, &s.ceiling) // The rest is of the testing package.
	}
	if s.addr == "" {
		b.Fatal("the source does not say where it is", said.Err())
	}
	return s
}

const sourceSays = "source at %s with versions up to %d"

// beSource serves until the input ends.
func beSource(b *testing.B) {
	source := filled(b, sourceRecords)
	addr := serve(b, source, givenAway, (*Source).Handle)
	fmt.Printf("\n"+sourceSays+"\n", addr, source.Ceiling())
	_, err := io.Copy(io.Discard, os.Stdin)
	check(b, err)
}

// door is some sessions whose operations wait at a time, and one who goes on with them.
type door struct {
	b        *testing.B
	sessions []*store.Session
	event    int
	woken    atomic.Bool
	ready    chan int
	waiting  int
	keys     int // of each operation
}

func newDoor(b *testing.B, waiting, keys int) *door {
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	check(b, err)
	d := &door{b: b, event: event, waiting: waiting, keys: keys, ready: make(chan int, waiting)}
	b.Cleanup(func() { _ = unix.Close(event) })
	return d
}

// open has the next operations use a store.
func (d *door) open(st *store.Store) {
	d.sessions = nil
	for range d.waiting {
		ss, err := st.NewSession()
		check(d.b, err)
		d.b.Cleanup(ss.Close)
		d.sessions = append(d.sessions, ss)
	}
}

// readAll has each session read its keys, from a number on.
func (d *door) readAll(from int) {
	left := 0
	fetches := make([]*store.Fetch, len(d.sessions))
	for i := range d.sessions {
		left += d.begin(i, from+i*d.keys, fetches)
	}
	for left > 0 {
		d.sleep()
		for range len(d.ready) {
			i := <-d.ready
			left--
			check(d.b, fetches[i].Err())
			d.sessions[i].Resume(fetches[i])
			left += d.begin(i, from+i*d.keys, fetches)
		}
	}
}

// begin reads the keys of one session, and returns 1 if that has to wait.
func (d *door) begin(i, from int, fetches []*store.Fetch) int {
	ss, missing := d.sessions[i], false
	ss.Begin()
	for number := from; number < from+d.keys; number++ {
		var key [30]byte
		binary.LittleEndian.PutUint64(key[:], uint64(number)*0x9E3779B97F4A7C15)
		k := ss.Key(0, key[:])
		switch _, st := ss.Get(&k); st {
		case store.OK:
		case store.Cold:
			missing = true
		default:
			d.b.Fatal(st, ss.Err())
		}
	}
	ss.End()
	if !missing {
		return 0
	}
	fetches[i] = ss.TakeFetch()
	fetches[i].Start(func() {
		d.ready <- i
		if !d.woken.Swap(true) {
			_, _ = unix.Write(d.event, binary.NativeEndian.AppendUint64(nil, 1))
		}
	})
	return 1
}

// sleep waits for an operation that may go on, and says nothing of it to the scheduler, as loops do.
func (d *door) sleep() {
	limit := unix.NsecToTimespec(time.Millisecond.Nanoseconds())
	for p := (unix.PollFd{Fd: int32(d.event), Events: unix.POLLIN}); p.Revents == 0; {
		_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
		if p.Revents == 0 {
			runtime.Gosched() // The collector may want it to stop.
		}
	}
	var count [8]byte
	_, _ = unix.Read(d.event, count[:])
	d.woken.Store(false)
}

// napFor keeps this thread off its core.
func napFor(d time.Duration) {
	t := unix.NsecToTimespec(d.Nanoseconds())
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}

// processorTime is what a process has used; 0 is this one.
func processorTime(b *testing.B, pid int) time.Duration {
	const scheduled = 2 // the clock of what was on a core, as the system numbers those of processes
	var t unix.Timespec
	check(b, unix.ClockGettime(int32(^pid<<3|scheduled), &t))
	return time.Duration(t.Nano())
}
