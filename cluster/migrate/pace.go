package migrate

import (
	"context"
	"sync"
	"time"
)

// pace holds pulls back to a rate; 0 holds nothing back. That clients go first is the work of threads' priorities.
type pace struct {
	bytesPerSecond int64

	mu   sync.Mutex
	free time.Time // when the rate allows the next pull
}

// wait waits before a pull; bytes is what the last one brought.
func (p *pace) wait(ctx context.Context, bytes int) error {
	pause := p.owed(bytes)
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
