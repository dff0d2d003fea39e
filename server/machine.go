package server

import (
	"io/fs"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ostrodb/ostro/cluster/peer"
)

// MachineMemory returns how much memory this process may use: the machine's,
// or less if a control group (a container) says so.
func MachineMemory() Size { return machineMemory(os.DirFS("/")) }

// machineMemory reads /proc and /sys below root. It returns 1 GiB if nothing
// there can be understood, which is wrong on the safe side.
func machineMemory(root fs.FS) Size {
	total := memTotal(root)
	for _, limit := range cgroupLimits(root) {
		if total == 0 || limit < total {
			total = limit
		}
	}
	if total == 0 {
		return 1 << 30
	}
	return total
}

func memTotal(root fs.FS) Size {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && fields[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return Size(kib << 10)
		}
	}
	return 0
}

// cgroupLimits returns the limits of the process' control group and of all its
// ancestors: the smallest one counts. Inside a container the path that
// /proc/self/cgroup names is often not there, but the mounted root then is the
// container's own group, so the walk up still meets it.
func cgroupLimits(root fs.FS) []Size {
	var limits []Size
	add := func(file string) {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
			limits = append(limits, Size(n)) // "max" does not parse: no limit
		}
	}
	own, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(own)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		switch {
		case parts[1] == "memory":
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes" // version 1
		case parts[0] != "0":
			continue
		}
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			add(path.Join(mount, dir, file))
			if dir == "/" {
				break
			}
		}
	}
	return limits
}

// tuneCollector fits the garbage collector to a store whose data lies outside
// the Go heap. What an operator set through GOGC or GOMEMLIMIT stays.
//
// The heap holds connections and buffers only, a few megabytes: the default
// pace would collect many times a second for nothing. So the heap may grow to
// several times its live size, as long as it keeps to half of the memory that
// the store leaves. Of a few megabytes that would still be one collection in three migrations, and each takes as many cores as it
// gets for some milliseconds. So it counts from a ballast on, which is never touched, and so is not there but for the collector.
func tuneCollector(store, machine Size) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		b := make([]byte, min(32<<20, machine/256))
		ballast.Store(&b)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(max(256<<20, (machine-store)/2)))
	}
}

// ballast is memory that is reserved and not used: see tuneCollector.
var ballast atomic.Pointer[[]byte]

// tuneProcessors makes more processors than network loops, so that a loop never
// waits for background work to be preempted: threads of low priority keep theirs while they wait for
// a core, and there may be several, of a migration that goes here and one that goes away, of copies for others and of one's own, and
// of cleaning. Two more are for those who listen to migrations. What an operator set through GOMAXPROCS stays.
func tuneProcessors(loops int) {
	const background, listeners = 5, 4
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), loops+background+listeners/2))
		peer.Listen(listeners)
	}
}
