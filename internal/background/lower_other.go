//go:build !linux

package background

import "time"

const (
	niceness = 10
	modesty  = 5
	patience = 15
	humility = 19
)

func lower(int) {}

func nap(d time.Duration) { time.Sleep(d) }
