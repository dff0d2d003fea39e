package nemesis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	native "github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/test/harness"
	"github.com/ostrodb/ostro/wire"
)

// tallied is how many counters there are: every node has some.
const tallied = 64

// tally adds to counters through the native protocol, which repeats what was not answered by itself. So
// every addition counts once, and the sum is exact, whatever happens.
type tally struct {
	c      *native.Client
	name   string
	counts [tallied]atomic.Int64 // additions that were acknowledged
	failed [tallied]atomic.Int64 // those that a server could not do: they count or not
	stop   atomic.Bool
	all    sync.WaitGroup
	ctx    context.Context
	end    context.CancelFunc
	mu     sync.Mutex
	wrong  error
}

// startTally counts until check.
func (g *game) startTally() (*tally, error) {
	s, err := g.cluster.Metadata()
	if err != nil {
		return nil, err
	}
	var addrs []string
	for _, n := range s.Living() {
		addrs = append(addrs, s.Nodes[n].Address)
	}
	t := &tally{name: fmt.Sprintf("t%x.%d", g.seed, g.round)}
	t.ctx, t.end = context.WithTimeout(context.Background(), 5*harness.Patience)
	if t.c, err = native.Dial(t.ctx, "ostro://"+strings.Join(addrs, ","), native.Options{Retry: harness.Patience}); err != nil {
		t.end()
		return nil, err
	}
	for n := range 3 {
		t.all.Go(func() { t.count(n) })
	}
	return t, nil
}

func (t *tally) key(n int) []byte { return fmt.Appendf(nil, "%s:%d", t.name, n) }

func (t *tally) count(worker int) {
	for i := worker; !t.stop.Load(); i++ {
		n := i * 7 % tallied
		_, err := t.c.Add(t.ctx, 0, t.key(n), 1).Wait()
		said := new(native.ServerError)
		switch {
		case err == nil:
			t.counts[n].Add(1)
		case errors.As(err, &said) && said.Status == wire.Refused: // as on a full disk: it does not count
		case errors.As(err, &said) && said.Status == wire.Failed:
			t.failed[n].Add(1)
		default:
			t.fail(fmt.Errorf("add to %s: %w", t.key(n), err))
			return
		}
		time.Sleep(time.Millisecond) // Servers need the cores more.
	}
}

func (t *tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong = errors.Join(t.wrong, err)
}

// close ends the counting; it may be called again.
func (t *tally) close() {
	t.stop.Store(true)
	t.all.Wait()
	t.end()
	_ = t.c.Close() // Nothing is under way.
}

// check ends the counting, and compares what counters hold with what was acknowledged.
func (t *tally) check() (sum int64, err error) {
	t.stop.Store(true)
	t.all.Wait()
	defer t.close()
	for n := range tallied {
		want, perhaps := t.counts[n].Load(), t.failed[n].Load()
		sum += want
		got, err := t.c.Get(t.ctx, 0, t.key(n)).Wait()
		switch {
		case errors.Is(err, native.ErrNotFound) && want == 0:
		case err != nil:
			t.fail(fmt.Errorf("read %s: %w", t.key(n), err))
		case got.Int() < want || got.Int() > want+perhaps:
			t.fail(fmt.Errorf("%s is %d; %d additions were acknowledged, and %d failed", t.key(n), got.Int(), want, perhaps))
		}
	}
	return sum, t.wrong
}
