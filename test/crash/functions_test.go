package crash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	native "github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/internal/port"
	"github.com/ostrodb/ostro/test/harness"
)

// A native client sends again what was not answered. Each call counts once, whenever the server is killed, whether it
// runs where it was read or in the scheduler.
func TestEveryCallCountsOnceHoweverOftenTheServerIsKilled(t *testing.T) {
	door := port.For(t)
	dir := filepath.Join(scratch, "functions")
	launch := func() *harness.Server {
		s := harness.Launch(t, binary, "--dir", dir, "--durability", "everysec", "--function-deadline", "1m", "--native-port", strconv.Itoa(door.Number))
		if err := s.Ready(); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := launch()
	install(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	c, err := native.Dial(ctx, "ostro://"+door.Addr(), native.Options{Retry: harness.Patience})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const keys, callers, kills, each = 4, 6, 4, 150
	var sums [keys]atomic.Int64
	var total atomic.Int64
	var stop atomic.Bool
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for j := i; !stop.Load(); j++ {
				work := []string{"1", "50000"}[j%2]
				if _, err := c.Do(ctx, native.Invoke(0, fmt.Append(nil, "n", j%keys), "count", []byte(work))); err != nil {
					t.Errorf("a call failed: %v", err)
					return
				}
				sums[j%keys].Add(1)
				total.Add(1)
			}
		})
	}
	for range kills {
		want := total.Load() + each
		await.True(t, "more was called", func() bool { return total.Load() >= want || t.Failed() })
		s.Kill()
		s = launch()
	}
	stop.Store(true)
	all.Wait()
	for i := range sums {
		r, err := c.Do(ctx, native.Get(0, fmt.Append(nil, "n", i)))
		if err != nil || r.Int() != sums[i].Load() {
			t.Errorf("counter %d is %d, want %d, %v", i, r.Int(), sums[i].Load(), err)
		}
	}
	s.Kill()
}

// install has the functions for tests of calls on a server.
func install(t *testing.T, s *harness.Server) {
	t.Helper()
	code, err := os.ReadFile("../../server/call/testdata/calls.wasm")
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if r, err := c.Do("FUNCTION", "LOAD", "#!wasm name=calls\n"+string(code)); err != nil {
		t.Fatal(r, err)
	}
}
