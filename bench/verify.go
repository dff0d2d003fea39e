package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
)

// expected is a range of records as fill wrote them.
type expected struct {
	keys       workload.Encoding
	from, to   uint64
	generation uint64
	value      int // bytes
}

// verifyConnections read at once, each its own part.
const verifyConnections = 4

// verify reads every record of the range and fails on the first that is
// missing or holds something else.
func (e expected) verify(ctx context.Context, p *progress, addr string) error {
	var done atomic.Uint64
	var wg sync.WaitGroup
	errs := make([]error, verifyConnections)
	for i := range uint64(verifyConnections) {
		part, n := e, e.to-e.from
		part.from, part.to = e.from+i*n/verifyConnections, e.from+(i+1)*n/verifyConnections
		wg.Go(func() { errs[i] = part.verifyPart(ctx, addr, &done) })
	}
	finished := make(chan struct{})
	go func() { wg.Wait(); close(finished) }()
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	for {
		select {
		case <-finished:
			return errors.Join(errs...)
		case <-tick.C:
			p.set(done.Load(), e.to-e.from)
		}
	}
}

// verifyPart asks on one goroutine and reads on another, so that the server is
// never idle.
func (e expected) verifyPart(ctx context.Context, addr string, done *atomic.Uint64) error {
	c, err := dialControl(addr)
	if err != nil {
		return err
	}
	defer c.close()
	asked := make(chan error, 1)
	go func() { asked <- e.ask(ctx, c) }()
	scratch := make([]byte, e.value)
	for id := e.from; id < e.to; id++ {
		got, err := c.receive()
		if err == nil {
			err = workload.CheckValue(got, id, e.generation, e.value, scratch)
		}
		if err != nil {
			c.close() // ends the asking as well
			return errors.Join(fmt.Errorf("read back: %w", err), ctx.Err())
		}
		done.Add(1)
	}
	return <-asked
}

func (e expected) ask(ctx context.Context, c *control) error {
	key := make([]byte, e.keys.Len())
	for id := e.from; id < e.to; id++ {
		if id%1024 == 0 && ctx.Err() != nil {
			c.close()
			return ctx.Err()
		}
		e.keys.Put(key, id)
		c.send("GET", string(key))
	}
	return c.w.Flush()
}
