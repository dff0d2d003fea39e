package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of /proc/PID/stat on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// cpuTime is how long the process has run on any core, in user and in kernel
// mode.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	return parseCPUTime(stat)
}

// parseCPUTime takes utime and stime, the 14th and 15th fields; the second is
// the program's name in parentheses, which may hold anything.
func parseCPUTime(stat []byte) (time.Duration, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("process status %q has too few fields", stat)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("process status: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// resident is a process' memory that lies in RAM.
type resident struct {
	Total     int64 `json:"total"`
	Anonymous int64 `json:"anonymous"` // its own
	File      int64 `json:"file"`      // pages of files it has mapped
	Shared    int64 `json:"shared"`    // shared memory
}

func residentOf(pid int) (resident, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return resident{}, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return parseResident(string(status)), nil
}

func parseResident(status string) resident {
	var r resident
	into := map[string]*int64{"VmRSS": &r.Total, "RssAnon": &r.Anonymous, "RssFile": &r.File, "RssShmem": &r.Shared}
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		if at := into[name]; at != nil {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			*at = kib << 10
		}
	}
	return r
}
