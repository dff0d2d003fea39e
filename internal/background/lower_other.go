//go:build !linux

package background

import (
	"runtime"
	"time"
)

const (
	niceness = 10
	modesty  = 9
	patience = 15
	humility = 19
)

func lower(int) {}

// yield is for humble threads between two pieces of work: whoever waits for the core goes first.
func yield() { runtime.Gosched() }

func nap(d time.Duration) { time.Sleep(d) }
