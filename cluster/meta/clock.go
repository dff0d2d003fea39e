package meta

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is a clock that never goes back and does not stand still while the
// process is stopped or the machine sleeps, as Go's own does in the latter case.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("read the clock: " + err.Error()) // Linux has had it since 2.6.39.
	}
	return time.Duration(ts.Nano())
}
