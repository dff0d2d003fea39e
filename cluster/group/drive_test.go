package group_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
)

func TestWhoListensForTheEndHearsOfItThoughNobodyWaits(t *testing.T) {
	everywhere(t, func(t *testing.T, provider string, mode group.Mode) {
		s := newScene(t, provider, group.Spec{Mode: mode, Window: 4, MaxWrite: 64}, 2)
		ctx := s.ctx()
		for i := range 20 {
			p := must(s.g.Write(ctx, 0, []byte{byte(i)}))(t)
			wait(t, ctx, p.Done())
			s.ok(s.g.Write(ctx, 0, []byte{byte(i)})) // A waiter in between.
		}
	})
}

func TestOperationsThatNobodyWaitsForMakeRoom(t *testing.T) {
	s := newScene(t, "shm", group.Spec{Window: 2, MaxWrite: 64}, 3)
	ctx := s.ctx()
	var last *group.Pending
	for i := range 200 {
		last = must(s.g.Write(ctx, 0, []byte{byte(i)}))(t)
	}
	s.ok(last, nil)
	s.want(0, []byte{199})
}

// Waiters, listeners, readers and issuers of many goroutines take turns.
func TestManyGoroutinesShareOneGroup(t *testing.T) {
	for _, provider := range []string{"inproc", "shm", "tcp"} {
		t.Run(provider, func(t *testing.T) {
			s := newScene(t, provider, group.Spec{Window: 16, MaxWrite: 64}, 3)
			const workers, rounds = 12, 60
			var all sync.WaitGroup
			failed := make(chan error, workers)
			for w := range workers {
				all.Go(func() {
					for i := range rounds {
						if err := s.oneRound(uint64(64*w), byte(i+1), w%3); err != nil {
							failed <- fmt.Errorf("worker %d, round %d: %w", w, i, err)
							return
						}
					}
				})
			}
			all.Wait()
			close(failed)
			for err := range failed {
				t.Fatal(err)
			}
			for w := range workers {
				s.want(64*w, []byte{rounds})
			}
		})
	}
}

func (s *scene) oneRound(off uint64, b byte, how int) error {
	ctx := s.ctx()
	p, err := s.g.Write(ctx, off, []byte{b})
	if err != nil {
		return err
	}
	if how == 1 {
		select {
		case <-p.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if _, err := p.Wait(ctx); err != nil || how != 2 {
		return err
	}
	got := make([]byte, 1)
	if err := s.g.Read(ctx, int(b)%s.g.Replicas(), off, got); err != nil || got[0] != b {
		return fmt.Errorf("read %d, want %d: %w", got[0], b, err)
	}
	return nil
}
