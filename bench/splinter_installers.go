package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/bench/guest"
)

// withInstalls is bad modules beside none. In both kinds of rounds somebody else installs a small module, again and again.
func (x *splinter) withInstalls(s *splinterServer, o order, kind string, code func(n int) []byte) []way {
	round := func(name string, bad bool) way {
		return way{name, func(ctx context.Context) (r splinterRound, err error) {
			o := o
			crowd := &installers{s: s, code: code}
			if bad {
				crowd.start(ctx)
				o.every, o.deed = x.f.kindsEvery, crowd.deed
			}
			clerk := s.startClerk(ctx)
			r, err = x.fleetRound(ctx, s, o)
			took, failed := clerk.stop()
			r.Install, r.InstallMost = median(took), slices.Max(append(took, 0))
			r.Answered = int(crowd.answered.Load())
			return r, errors.Join(err, failed, crowd.stop())
		}}
	}
	return []way{round(noneName, false), round(kind, true)}
}

// installers are bad tenants who install modules, one at a time each.
type installers struct {
	s        *splinterServer
	code     func(n int) []byte
	work     chan int
	begun    int
	answered atomic.Int64
	all      sync.WaitGroup
	mu       sync.Mutex
	failed   error
}

func (in *installers) start(ctx context.Context) {
	in.work = make(chan int)
	for _, m := range in.s.members[len(in.s.members)-badTenants:] {
		in.all.Go(func() {
			if err := in.install(ctx, m); err != nil {
				in.mu.Lock()
				in.failed = err
				in.mu.Unlock()
			}
		})
	}
}

// bombs counts all modules of a run: no two are alike.
var bombs atomic.Int64

// install installs what it is told to. The server may well refuse it.
func (in *installers) install(ctx context.Context, m fleetMember) error {
	c, err := dialAs(in.s.Addr, m)
	if err != nil {
		return err
	}
	defer c.close()
	for range in.work {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var refused replyError
		_, err := c.do("FUNCTION", "LOAD", "REPLACE", "#!wasm name=bad\n"+string(in.code(int(bombs.Add(1)))))
		if err != nil && !errors.As(err, &refused) {
			return fmt.Errorf("install a bad module: %w", err)
		}
		in.answered.Add(1)
	}
	return nil
}

// deed has somebody install a module, if one of them has nothing to do.
func (in *installers) deed(f *fleet) error {
	select {
	case in.work <- in.begun:
		in.begun++
		f.total.Begun++
	default:
	}
	return nil
}

// stop waits until all is answered.
func (in *installers) stop() error {
	if in.work != nil {
		close(in.work)
	}
	in.all.Wait()
	return in.failed
}

// clerk is a tenant who installs a small module again and again, never the same.
type clerk struct {
	end  chan struct{}
	done chan struct{}
	took []float64
	err  error
}

// clerkPause is what lies between two installations.
const clerkPause = 20 * time.Millisecond

func (s *splinterServer) startClerk(ctx context.Context) *clerk {
	c := &clerk{end: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = c.work(ctx, s)
	}()
	return c
}

func (c *clerk) work(ctx context.Context, s *splinterServer) error {
	conn, err := dialAs(s.Addr, s.members[0])
	if err != nil {
		return err
	}
	defer conn.close()
	for {
		began := time.Now()
		n := int(bombs.Add(1)) % guest.MostNumbered
		if _, err := conn.do("FUNCTION", "LOAD", "REPLACE", "#!wasm name=numbered\n"+string(guest.Numbered(n))); err != nil {
			return fmt.Errorf("install a good module: %w", err)
		}
		c.took = append(c.took, float64(time.Since(began)))
		select {
		case <-c.end:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(clerkPause):
		}
	}
}

func (c *clerk) stop() ([]float64, error) {
	close(c.end)
	<-c.done
	return c.took, c.err
}
