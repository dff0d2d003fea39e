package background

import (
	"time"

	"golang.org/x/sys/unix"
)

// niceness leaves a busy machine's background about a twelfth of a core's time:
// with the lowest priority of all it could starve, and serving would have to
// wait for the memory that it frees.
const niceness = 11

// modesty leaves it a tenth.
const modesty = 10

// diligence leaves it more than a quarter: clients wait for what pulls have not brought yet. Beside clients who leave little idle a
// migration takes half as long again with 10, and five times as long with 16. The less of a core those get who serve, the more
// requests they answer at a time, so their median is the same. With 3 and less their 99.9th percentile is not.
const diligence = 4

// patience leaves three quarters of what the background gets to quiet goroutines.
const patience = 15

// humility leaves it what is idle, and a thirtieth of a core that never is: who is humble gets on whatever others do.
const humility = 16

// slice is how long a nice thread wants to run at a time, longer than others do: who wakes up and wants less goes
// before it at once, and does not wait until it has had its time. It is not much longer, for once off a core that is never idle
// the thread is back when others have had that time by its weight, 176 ms for who is humble, and whoever waits for it waits as long:
// the collector stops all for a thread that is in the midst of Go code. With 100 ms and niceness 19 that was 6.8 s.
const slice = 5 * time.Millisecond

// usual is the niceness of threads of which nothing was asked.
var usual = func() int32 {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	return int32(20 - n) // The system call reports 20 less the niceness.
}()

// The kernel's bounds.
const nicest, keenest = 19, -20

// lower makes the current thread nicer than usual ones, by n; false: it was refused, and the thread is as it was. Kernels before 6.12 ignore the slice.
func lower(n int) bool {
	nice := min(usual+int32(n), nicest)
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: nice, Runtime: uint64(slice)}
	return unix.SchedSetAttr(0, &attr, 0) == nil || unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), int(nice)) == nil
}

// moment is how long a prompt thread wants to run at a time, less than others do. Woken, it goes before whoever is on its core: else it might
// wait for the slice of that one, a millisecond or more, at each of the steps from who misses a key to who has it and back.
const moment = 100 * time.Microsecond

// haste has a prompt thread go on while others want its core: what it does to open ranges for clients takes longer than a moment. It needs
// the right to raise priorities (CAP_SYS_NICE), as root has.
const haste = 10

// hasten makes the current thread prompt, and ease has it wait for its part of a core again.
func hasten() {
	if !soon(hasty()) {
		_ = soon(usual)
	}
}

// hasty is the niceness of who makes haste.
func hasty() int32 { return max(usual-haste, keenest) }

func ease() { _ = soon(usual) }

// soon gives the current thread a short slice, and a niceness. A refusal leaves it as it is. Kernels before 6.12 ignore the slice.
func soon(nice int32) bool {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return true
	}
	attr.Runtime, attr.Nice = uint64(moment), nice
	return unix.SchedSetAttr(0, attr, 0) == nil
}

// yield is for humble threads between two pieces of work: whoever waits for the core goes first. A thread that wakes up may have
// had more than its part a moment before. The kernel then lets a nice one run on, and looks again when that has had a slice of the
// others' or at its next tick: milliseconds, where some pieces take a few hundred microseconds. It is a system call for the Go
// scheduler, too: who is off its core here holds up neither the collector nor those who want its processor.
//
// Who yields gives up the rest of its slice, and with it most of what it gets of a core that is never idle. So pulls do not: with
// a slice of 0.2 ms, to be given up after each pull, they brought a fifth less a second beside a load of 30%, two fifths less
// beside one of 80%, for a third less of the clients' median. And so nobody does so for long: see courtesy.
func yield() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Nap sleeps to some ten microseconds, where the Go scheduler's timers come a millisecond late.
func Nap(d time.Duration) {
	at := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&at, nil) // A signal ends it early.
}
