package bench

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machineTime is how the cores of the machine spent their time since it
// started.
type machineTime struct {
	all, busy, stolen time.Duration
	ours              time.Duration // this process and its ended children
}

func readMachineTime() machineTime {
	stat, _ := os.ReadFile("/proc/stat") // zeros say that it is not known
	t := parseMachineTime(stat)
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		_ = unix.Getrusage(who, &u) // cannot fail with these arguments
		t.ours += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return t
}

// parseMachineTime reads the first line: user, nice, system, idle, iowait,
// irq, softirq, steal.
func parseMachineTime(stat []byte) machineTime {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	var t machineTime
	for i, f := range strings.Fields(string(line)) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || i > 8 {
			continue // the word cpu, and guests, who are counted before
		}
		d := time.Duration(n) * clockTick
		t.all += d
		switch i {
		case 4, 5: // idle, waiting for a disk
		case 8:
			t.stolen += d
		default:
			t.busy += d
		}
	}
	return t
}

// Company is how much of the cores others took during a run: figures taken in
// much company are worth little.
type Company struct {
	Others float64 `json:"others"` // share of all cores
	Stolen float64 `json:"stolen"` // by the host of this virtual machine
}

// since compares with an earlier reading.
func (t machineTime) since(before machineTime) Company {
	all := float64(t.all - before.all)
	if all <= 0 {
		return Company{}
	}
	return Company{
		Others: max(0, float64((t.busy-before.busy)-(t.ours-before.ours))/all),
		Stolen: float64(t.stolen-before.stolen) / all,
	}
}
