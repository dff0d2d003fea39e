package migrate

import (
	"context"
	"sync"
	"time"
)

// pace holds pulls back: to a rate, if there is one, and while clients need the machine. Zero values of its
// settings hold nothing back.
type pace struct {
	bytesPerSecond int64
	busy           func() float64 // share of the time that front doors work, 0 to 1; may be nil

	mu   sync.Mutex
	free time.Time // when the rate allows the next pull
}

const (
	// Below easy clients need so little that pulls go on at once. Above, they pause for the
	// longer the more there is to do, up to longest.
	easy    = 0.75
	longest = 2 * time.Millisecond
)

// wait waits before a pull; took is how long the last one of the same partition had the machine, bytes what
// it brought.
func (p *pace) wait(ctx context.Context, took time.Duration, bytes int) error {
	pause := p.owed(bytes)
	if p.busy != nil && took > 0 {
		if share := min(p.busy(), 1); share > easy {
			pause = max(pause, min(time.Duration(float64(took)*(share-easy)/(1-easy)*4), longest))
		}
	}
	if pause <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// owed counts bytes against the rate and tells how long to wait for it.
func (p *pace) owed(bytes int) time.Duration {
	if p.bytesPerSecond <= 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(bytes) / float64(p.bytesPerSecond) * float64(time.Second)))
	return p.free.Sub(now)
}
