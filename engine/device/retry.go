package device

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"time"
)

const (
	attempts       = 5
	attemptTimeout = time.Minute
	firstPause     = 100 * time.Millisecond
	longestPause   = 3 * time.Second
)

// retry repeats what failed for a passing reason, a few times with growing pauses.
// An attempt that hangs counts as failed.
type retry struct {
	retryable func(error) bool
	again     func(error) // hears of each failure that is followed by another attempt
}

func (r *retry) do(ctx context.Context, act func(ctx context.Context) error) error {
	pause := firstPause
	for n := 1; ; n++ {
		err := r.once(ctx, act)
		if err == nil || isEOF(err) || isMissing(err) || n == attempts || !r.passing(ctx, err) {
			return err
		}
		r.again(err)
		if !sleep(ctx, pause/2+rand.N(pause/2)) {
			return errors.Join(ctx.Err(), err)
		}
		pause = min(2*pause, longestPause)
	}
}

func (r *retry) once(ctx context.Context, act func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return act(ctx)
}

// passing tells whether another attempt makes sense: not when the caller has given
// up.
func (r *retry) passing(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	return errors.Is(err, context.DeadlineExceeded) || r.retryable(err)
}

// retried is do for calls with a result.
func retried[T any](ctx context.Context, r *retry, act func(ctx context.Context) (T, error)) (result T, err error) {
	err = r.do(ctx, func(ctx context.Context) (err error) {
		result, err = act(ctx)
		return err
	})
	return result, err
}

// sleep is false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
