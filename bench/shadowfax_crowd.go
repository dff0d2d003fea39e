package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/client"
)

// crowd is native clients of a cluster, each with one operation under way: the client library itself, which
// gathers them into batches and follows ownership. Half of the operations read, half read and change a
// record in one step (YCSB-F).
type crowd struct {
	c     *client.Client
	mine  estate
	draws []func() uint32
	began time.Time
	trail []roamPoint // in order, once run has ended
}

func newCrowd(ctx context.Context, on *cluster, mine estate, clients int, o client.Options) (*crowd, error) {
	var seeds []string
	for _, n := range on.Nodes {
		seeds = append(seeds, n.Native)
	}
	c, err := client.Dial(ctx, "ostro://"+strings.Join(seeds, ","), o)
	if err != nil {
		return nil, err
	}
	w := &crowd{c: c, mine: mine}
	draw := skewed(len(mine.ids), usualSkew, 1)
	all := make([]uint32, skewedDraws)
	for i := range all {
		all[i] = draw()
	}
	for i := range clients {
		w.draws = append(w.draws, circle(all, i*len(all)/clients))
	}
	return w, nil
}

// circle goes around a list for ever.
func circle(all []uint32, from int) func() uint32 {
	return func() uint32 {
		from = (from + 1) % len(all)
		return all[from]
	}
}

func (w *crowd) close() { _ = w.c.Close() }

// drawer is what one client draws.
func (w *crowd) drawer(i int) func() uint32 { return w.draws[i] }

// run works until the context ends; an operation that fails ends it.
func (w *crowd) run(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	w.began = time.Now()
	var mu sync.Mutex
	var failed error
	var all sync.WaitGroup
	for i := range w.draws {
		all.Go(func() {
			trail, err := w.work(inner, w.draws[i], i)
			mu.Lock()
			defer mu.Unlock()
			w.trail = append(w.trail, trail...)
			if err != nil && failed == nil {
				failed = err
				cancel()
			}
		})
	}
	all.Wait()
	slices.SortFunc(w.trail, func(a, b roamPoint) int { return int(a.at - b.at) })
	return failed
}

// work is one client.
func (w *crowd) work(ctx context.Context, draw func() uint32, n int) (trail []roamPoint, err error) {
	key := make([]byte, workload.Text30.Len())
	workload.Text30.Put(key, 0)
	for ; ctx.Err() == nil; n++ {
		workload.Text30.Patch(key, uint64(w.mine.ids[draw()]))
		op := client.Get(0, key)
		if n%2 == 1 {
			op = client.Merge(0, key, "or", []byte{'0'})
		}
		began := time.Now()
		_, err := w.c.Do(ctx, op)
		switch {
		case errors.Is(err, context.Canceled):
			return trail, nil
		case err != nil:
			return trail, fmt.Errorf("an operation failed: %w", err)
		}
		now := time.Now()
		trail = append(trail, roamPoint{now.Sub(w.began), now.Sub(began)})
	}
	return trail, nil
}

// stretch sums up what was answered between two moments.
func (w *crowd) stretch(from, to time.Time) stretch {
	a, b := from.Sub(w.began), to.Sub(w.began)
	return stretchOf(w.trail, span{from: a, to: b})
}
