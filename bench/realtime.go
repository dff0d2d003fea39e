package bench

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	schedFIFO = 1
	schedRR   = 2
)

// realTime asks for real-time priority for all threads of this process; threads
// and processes that it starts later have it, too. Threads of one priority take
// turns: Go's runtime spins at times until another thread has gone on.
func realTime(priority uint32) error {
	for {
		raised, err := raiseThreads(priority)
		if err != nil {
			return fmt.Errorf("ask for real-time priority: %w", err)
		}
		if raised == 0 {
			return nil
		}
	}
}

// raiseThreads raises all that are not yet. A thread that another has started just
// before it was raised itself is found the next time.
func raiseThreads(priority uint32) (raised int, err error) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0, err
	}
	for _, t := range threads {
		tid, _ := strconv.Atoi(t.Name())
		if isRealTime(tid) {
			continue
		}
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedRR, Priority: priority}
		switch err := unix.SchedSetAttr(tid, &attr, 0); err {
		case nil:
			raised++
		case unix.ESRCH: // It has ended.
		default:
			return raised, err
		}
	}
	return raised, nil
}

// isRealTime tells whether a thread, or a process' first one, has a real-time priority.
func isRealTime(pid int) bool {
	attr, err := unix.SchedGetAttr(pid, 0)
	return err == nil && (attr.Policy == schedFIFO || attr.Policy == schedRR)
}

// boundRealTime has the system kill this process and what it starts if a thread
// of real-time priority runs for so long without ever waiting: on few cores nobody
// else could end it.
func boundRealTime(limit time.Duration) error {
	const rlimitRTTime = 15
	micros := uint64(limit.Microseconds())
	if err := unix.Setrlimit(rlimitRTTime, &unix.Rlimit{Cur: micros, Max: micros}); err != nil {
		return fmt.Errorf("bound real-time priority: %w", err)
	}
	return nil
}
