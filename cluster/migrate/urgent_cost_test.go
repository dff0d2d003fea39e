package migrate

import (
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
// between two pulls, so that all who take part in one have gone to sleep before the next.
func BenchmarkPriorityPull(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(4, runtime.NumCPU())))
	source := startSource(b)
	for _, waiting := range []int{1, 8} {
		b.Run(fmt.Sprintf("%d waiting", waiting), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			door := newDoor(b, waiting)
			var p *pulls
			var here, there time.Duration
			next, asks := sourceRecords, int64(0)
			for b.Loop() {
				if next+waiting > sourceRecords {
					b.StopTimer()
					p = pullsFrom(b, source.addr, source.ceiling, 20<<10, 1, givenAway)
					door.open(p.m.o.Store)
					door.readAll(0) // It connects.
					next = waiting
					b.StartTimer()
				}
				hereBefore, thereBefore, asksBefore := processorTime(b, 0), processorTime(b, source.pid), p.m.asks.Load()
				napFor(300 * time.Microsecond)
				door.readAll(next)
				here, there = here+processorTime(b, 0)-hereBefore, there+processorTime(b, source.pid)-thereBefore
				asks += p.m.asks.Load() - asksBefore
				next += waiting
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

// startSource runs this test's binary as a source until the benchmark ends.
func startSource(b *testing.B) (s separate) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestASourceOfItsOwnProcessServesUntilItsInputEnds$")
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
	_, err = fmt.Fscanln(out, &s.addr, &s.ceiling)
	check(b, err)
	return s
}

// The process that startSource starts runs this.
func TestASourceOfItsOwnProcessServesUntilItsInputEnds(t *testing.T) {
	if os.Getenv(sourceProcess) == "" {
		t.Skip("it is for a benchmark")
	}
	runtime.GOMAXPROCS(max(4, runtime.NumCPU()))
	source := filled(t, sourceRecords)
	fmt.Println(serve(t, source, givenAway, (*Source).Handle), source.Ceiling())
	_, err := io.Copy(io.Discard, os.Stdin)
	check(t, err)
}

// door is some sessions whose operations wait at a time, and one who goes on with them.
type door struct {
	b        *testing.B
	sessions []*store.Session
	event    int
	woken    atomic.Bool
	ready    chan int
	waiting  int
}

func newDoor(b *testing.B, waiting int) *door {
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	check(b, err)
	d := &door{b: b, event: event, waiting: waiting, ready: make(chan int, waiting)}
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

// readAll reads as many keys as there are sessions, from a number on.
func (d *door) readAll(from int) {
	left := 0
	fetches := make([]*store.Fetch, len(d.sessions))
	for i := range d.sessions {
		left += d.begin(i, from+i, fetches)
	}
	for left > 0 {
		d.sleep()
		for range len(d.ready) {
			i := <-d.ready
			left--
			check(d.b, fetches[i].Err())
			d.sessions[i].Resume(fetches[i])
			left += d.begin(i, from+i, fetches)
		}
	}
}

// begin reads a key, and returns 1 if that has to wait.
func (d *door) begin(i, number int, fetches []*store.Fetch) int {
	ss := d.sessions[i]
	var key [30]byte
	binary.LittleEndian.PutUint64(key[:], uint64(number)*0x9E3779B97F4A7C15)
	ss.Begin()
	k := ss.Key(0, key[:])
	_, st := ss.Get(&k)
	ss.End()
	switch st {
	case store.OK:
		return 0
	case store.Cold:
	default:
		d.b.Fatal(st, ss.Err())
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
	const millis = 1
	for p := (unix.PollFd{Fd: int32(d.event), Events: unix.POLLIN}); p.Revents == 0; {
		_, _, _ = unix.RawSyscall(unix.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, millis)
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
