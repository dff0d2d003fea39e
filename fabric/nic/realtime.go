package nic

import (
	"log/slog"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	schedOther = 0
	schedRR    = 2
)

// prioritize asks for SCHED_RR for every thread of the process: the loop's own
// would not do, for the collector's threads must not wait behind other programs
// while the loop waits for them. Threads that come later inherit it.
//
// Not SCHED_FIFO: threads of one process wait for each other by yielding in a
// loop, as the runtime's sweeper does, and under FIFO the one that is waited for
// never gets a core that the other one has. Two NICs took a machine of two
// cores that way, for good. Under RR it is its turn when the slice is over.
func prioritize(priority int, log *slog.Logger) {
	for {
		raised, err := raiseThreads(priority)
		switch {
		case err != nil:
			log.Warn("no real-time priority: the NIC competes with other programs for the processor; "+
				"allow it with CAP_SYS_NICE or `ulimit -r`", "asked", priority, "error", err)
			return
		case raised == 0:
			log.Info("real-time priority", "policy", "SCHED_RR", "priority", priority)
			return
		}
	}
}

// raiseThreads raises all threads that are not yet, and tells how many. One that
// another has started just before it was raised itself is found the next time: when
// there was none to raise, there will be none.
func raiseThreads(priority int) (raised int, err error) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0, err
	}
	param := struct{ priority int32 }{int32(priority)}
	for _, t := range threads {
		id, _ := strconv.Atoi(t.Name())
		if policyOf(id) == schedRR {
			continue
		}
		_, _, no := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(id), schedRR, uintptr(unsafe.Pointer(&param)))
		switch no {
		case 0:
			raised++
		case unix.ESRCH: // It has ended.
		default:
			return raised, no
		}
	}
	return raised, nil
}

// policy tells the calling thread's scheduling policy.
func policy() int { return policyOf(0) }

func policyOf(thread int) int {
	p, _, _ := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(thread), 0, 0)
	return int(p)
}
