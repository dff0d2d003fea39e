package redis

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// idleMeter tells how many of the machine's processors had nothing to do over
// a stretch of time.
type idleMeter struct {
	since   time.Time
	ticks   int64
	measure func() float64 // if set, it knows instead
}

const ticksPerSecond = 100 // of /proc/stat, on every architecture

func (m *idleMeter) start() { m.since, m.ticks = time.Now(), idleTicks() }

// cores returns the average since start; 0 if the system does not tell.
func (m *idleMeter) cores() float64 {
	if m.measure != nil {
		return m.measure()
	}
	ticks := idleTicks()
	seconds := time.Since(m.since).Seconds()
	if ticks < 0 || m.ticks < 0 || seconds <= 0 {
		return 0
	}
	return float64(ticks-m.ticks) / ticksPerSecond / seconds
}

// idleTicks sums idle time and time waiting for disks over all processors; -1
// if it cannot be read.
func idleTicks() int64 {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return -1
	}
	defer f.Close()
	var head [256]byte
	n, _ := f.Read(head[:])
	line, _, _ := bytes.Cut(head[:n], []byte{'\n'})
	fields := bytes.Fields(line)
	if len(fields) < 6 || string(fields[0]) != "cpu" {
		return -1
	}
	idle, err1 := strconv.ParseInt(string(fields[4]), 10, 64)
	wait, err2 := strconv.ParseInt(string(fields[5]), 10, 64)
	if err1 != nil || err2 != nil {
		return -1
	}
	return idle + wait
}
