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
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	for _, t := range threads {
		tid, _ := strconv.Atoi(t.Name())
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedRR, Priority: priority}
		if err := unix.SchedSetAttr(tid, &attr, 0); err != nil && err != unix.ESRCH {
			return fmt.Errorf("ask for real-time priority: %w", err)
		}
	}
	return nil
}

// isRealTime tells whether a process' first thread has a real-time priority.
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
