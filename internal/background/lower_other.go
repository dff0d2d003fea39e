//go:build !linux

package background

import (
	"runtime"
	"time"
)

const (
	niceness  = 11
	modesty   = 10
	diligence = 4
	patience  = 15
	humility  = 19
)

func lower(int) bool { return false }

func hasten() {}

func ease() {}

// yield is for humble threads between two pieces of work: whoever waits for the core goes first.
func yield() { runtime.Gosched() }

// Nap sleeps for about as long as it is told.
func Nap(d time.Duration) { time.Sleep(d) }
