package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot reads it.
func SinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("read the clock: " + err.Error()) // Linux has had it since 2.6.39.
	}
	return time.Duration(ts.Nano())
}
