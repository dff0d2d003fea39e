package redis

import (
	"math"
	"sync/atomic"
	"time"
)

// loadMeter tells how busy a loop is. All but the atomics belong to the loop.
type loadMeter struct {
	base   time.Time // the clock counts from here
	mark   int64     // when the current stretch of work began
	opened int64     // when the window began
	worked int64     // nanoseconds of work in the window

	total atomic.Int64  // nanoseconds of work since the start
	last  atomic.Uint64 // share of work in the last window, as float bits
}

const quietLoad = 0.02 // below this a loop may sleep as long as it likes

func (m *loadMeter) start() { m.base = time.Now() }

// clock is a monotonic time in nanoseconds.
func (m *loadMeter) clock() int64 { return int64(time.Since(m.base)) }

// resume notes that work begins, after a wait.
func (m *loadMeter) resume(now time.Time) { m.mark = int64(now.Sub(m.base)) }

// lap returns the time since the last lap or resume, which was work.
func (m *loadMeter) lap() int64 {
	now := m.clock()
	spent := now - m.mark
	m.mark = now
	m.worked += spent
	return spent
}

// window ends the current window if it is long enough and begins another. It
// returns the share of time that was work.
func (m *loadMeter) window(atLeast time.Duration) (share float64, ended bool) {
	length := m.mark - m.opened
	if length < int64(atLeast) {
		return 0, false
	}
	share = float64(m.worked) / float64(length)
	m.total.Add(m.worked)
	m.last.Store(math.Float64bits(share))
	m.opened, m.worked = m.mark, 0
	return share, true
}

// utilisation is the share of the last window.
func (m *loadMeter) utilisation() float64 { return math.Float64frombits(m.last.Load()) }

func (m *loadMeter) busyNanos() int64 { return m.total.Load() }
