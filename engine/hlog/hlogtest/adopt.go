package hlogtest

import (
	"context"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// Adopt copies side segments, unless it is told not to.
func (c *Copies) Adopt(ctx context.Context, segs ...hlog.SourceSegment) error {
	for _, s := range segs {
		if err := c.adopt(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (c *Copies) adopt(ctx context.Context, s hlog.SourceSegment) error {
	c.mu.Lock()
	load := c.src.Load
	switch {
	case c.closed:
		defer c.mu.Unlock()
		return c.late("Adopt")
	case c.broken != nil, ctx.Err() != nil:
		defer c.mu.Unlock()
		return errOr(c.broken, ctx.Err())
	case c.noAdopts != 0:
		c.noAdopts--
		c.refused++
		c.mu.Unlock()
		return errRefused
	}
	c.mu.Unlock()
	b, err := load(s.ID)
	if err != nil {
		return err
	}
	ext, err := record.ScanWith(b, s.ID, record.ScanOptions{Closed: true})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || ext.End != int(s.End) || ext.Batch != 0 || s.Batch != 0 {
		c.judge.Errorf("side segment %d is %+v (%v), but the log says %+v", s.ID, ext, err, s)
	}
	if old := c.segs[s.ID]; c.used[s.ID] && (old == nil || !old.side) {
		c.judge.Errorf("segment %d is adopted, but there was another one with that id", s.ID)
	}
	c.used[s.ID] = true
	c.segs[s.ID] = &copied{bytes: b, to: s.End, sealed: s.End, whole: true, closed: true, side: true}
	c.safe = c.Watermark()
	c.adopted++
	return nil
}

func errOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// RefuseAdopts lets the next n adoptions fail, all if n is negative.
func (c *Copies) RefuseAdopts(n int) { c.set(func() { c.noAdopts = n }) }

// RefusedAdopts counts adoptions that were.
func (c *Copies) RefusedAdopts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// Adopted counts the segments that were adopted.
func (c *Copies) Adopted() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.adopted
}
