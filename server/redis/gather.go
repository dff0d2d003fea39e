package redis

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// A crowd is so many connections served within gatherNanos.
	gatherCrowd = 12
	gatherNanos = int64(time.Millisecond)
	// A round with so many commands is worth its system calls.
	gatherEnough = 16
	// A loop that works less than this share of the time has nothing to save.
	gatherLoad = 0.3
	// The kernel lets a short sleep last about 50 microseconds longer.
	gatherRest = 10 * time.Microsecond
)

// gatherer lets a loop that a crowd keeps busy rest for a moment before it looks
// for work, as network cards do with their interrupts: without pipelining each
// request would else wake it, which costs the client, whose write does the waking,
// as much as the server. Some tens of microseconds are little to clients who wait
// for each other anyway; a few clients, or a loop with time to spare, never wait.
type gatherer struct {
	opened int64  // when the current window began
	window uint32 // its number
	met    int    // connections served in it
	crowd  int    // in the last one
	calls  int64  // commands of the last round

	rounds, total int64 // rounds, and commands in them, since thin was asked
}

// meet notes that a connection is served.
func (g *gatherer) meet(n *netState) {
	if n.met != g.window {
		n.met = g.window
		g.met++
	}
}

// round notes how many commands a round had that ends now.
func (g *gatherer) round(now, calls int64) {
	g.calls = calls
	if calls > 0 {
		g.rounds++
		g.total += calls
	}
	if now-g.opened > gatherNanos {
		g.opened, g.crowd, g.met = now, g.met, 0
		g.window++
	}
}

// heavy tells whether the commands since then took long each, of so many nanoseconds of work, in rounds that are not thin.
func (g *gatherer) heavy(worked int64) bool {
	return worked > g.total*heavyNanos && g.total >= g.rounds*gatherEnough/2
}

// thin tells whether the rounds since the last time had few commands each.
func (g *gatherer) thin() bool {
	thin := g.total < g.rounds*gatherEnough/2
	g.rounds, g.total = 0, 0
	return thin
}

// pays tells whether a rest would gather something.
func (g *gatherer) pays(load float64) bool {
	return g.crowd >= gatherCrowd && g.calls > 0 && g.calls < gatherEnough && load >= gatherLoad
}

// rest sleeps if it pays.
func (g *gatherer) rest(load float64) {
	if !g.pays(load) {
		return
	}
	nap := unix.NsecToTimespec(int64(gatherRest))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&nap)), 0, 0) // cut short by a signal: no harm
}
