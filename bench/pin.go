package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pinThisProcess keeps all threads of this process, and what it starts
// without saying otherwise, on the given cores.
func pinThisProcess(cpus string) error {
	if cpus == "" {
		return nil
	}
	var set unix.CPUSet
	for _, word := range strings.Split(cpus, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 0 {
			return fmt.Errorf("--client-cpus: %q is not a core's number", word)
		}
		set.Set(n)
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	for _, t := range threads {
		tid, _ := strconv.Atoi(t.Name())
		if err := unix.SchedSetaffinity(tid, &set); err != nil && err != unix.ESRCH {
			return fmt.Errorf("keep the clients on cores %s: %w", cpus, err)
		}
	}
	return nil
}
