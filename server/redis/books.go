package redis

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"
)

// books is what commands keep about the server as a whole.
type books struct {
	saves saves
	rates rates
	peak  highest
	slots slotMarks

	nameOnce sync.Once
	name     string
}

// runID names this run of the server, as INFO shows it.
func (b *books) runID() string {
	b.nameOnce.Do(func() {
		var id [20]byte
		_, _ = rand.Read(id[:]) // It never fails.
		b.name = hex.EncodeToString(id[:])
	})
	return b.name
}

// highest remembers the largest number that it was shown.
type highest struct {
	mu sync.Mutex
	n  int64
}

func (h *highest) of(n int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n = max(h.n, n)
	return h.n
}

// rates turn totals into speeds: between one INFO and the next, if at least
// rateMillis lie between them.
type rates struct {
	mu   sync.Mutex
	at   time.Time
	last sample
	now  sample // per second
}

// sample is what INFO shows the speed of.
type sample struct{ commands, bytesIn, bytesOut int64 }

const rateMillis = 100

func (r *rates) update(now time.Time, total sample) sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() {
		r.at, r.last = now, total
	}
	millis := now.Sub(r.at).Milliseconds()
	if millis >= rateMillis {
		r.now = sample{
			commands: (total.commands - r.last.commands) * 1000 / millis,
			bytesIn:  (total.bytesIn - r.last.bytesIn) * 1000 / millis,
			bytesOut: (total.bytesOut - r.last.bytesOut) * 1000 / millis,
		}
		r.at, r.last = now, total
	}
	return r.now
}
