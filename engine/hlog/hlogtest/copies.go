// Package hlogtest has a replicator for tests. It keeps copies in memory, makes
// them late and in an order of its own, and checks on the way that the log keeps
// what hlog.Replicator says of it.
//
//	Sealed ── waits ── a round copies some of it from the segment's memory ── Advanced
//
// What Lost gives is what others have when the log's node is gone.
package hlogtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// Judge is told of what must not happen.
type Judge interface {
	Errorf(format string, args ...any)
}

// Copies is a replicator. Its copies outlive it: see Next.
type Copies struct {
	judge Judge

	mu        sync.Mutex
	rng       *rand.Rand
	src       hlog.Source
	segs      map[record.SegmentID]*copied
	used      map[record.SegmentID]bool // ids that were ever opened
	done      map[record.BatchID]bool   // copied, above the watermark
	safe      record.BatchID            // the watermark when the list of segments changed last
	held      bool
	noRoom    int
	noDrops   int
	noAdopts  int
	adopted   int
	refused   int // adoptions
	dropped   int
	broken    error
	closed    bool
	watermark atomic.Uint64

	kick chan struct{}
	stop chan struct{}
	over sync.WaitGroup
}

// copied is the copy of one segment.
type copied struct {
	memory []byte // of the log; nil once it may be gone
	bytes  []byte
	to     uint32 // of bytes, what is copied
	batch  record.BatchID
	whole  bool // up to the closing seal
	queue  []piece
	sealed uint32
	closed bool
	side   bool
}

// piece is a batch that waits to be copied.
type piece struct {
	from, to uint32
	n        record.BatchID
	closed   bool
}

var (
	errRefused = errors.New("refused for a while")
	errOver    = errors.New("the replicator is closed")
)

// New makes copies that follow the log at their own pace.
func New(j Judge, seed uint64) *Copies {
	return &Copies{
		judge: j, rng: rand.New(rand.NewPCG(seed, 77)),
		segs: map[record.SegmentID]*copied{}, used: map[record.SegmentID]bool{}, done: map[record.BatchID]bool{},
		kick: make(chan struct{}, 1), stop: make(chan struct{}),
	}
}

// Next makes a replicator for the log's next life, which finds what this one
// left. This one is closed.
func (c *Copies) Next() *Copies {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := New(c.judge, c.rng.Uint64())
	for id := range c.used {
		n.used[id] = true
	}
	for id, s := range c.segs {
		n.segs[id] = &copied{bytes: s.bytes, to: s.to, batch: s.batch, whole: s.whole, side: s.side}
	}
	n.safe = c.safe
	return n
}

// Begin takes what the log has. What it has not, does not count any more.
func (c *Copies) Begin(_ context.Context, s hlog.Source) error {
	all := map[record.SegmentID]*copied{}
	for _, seg := range s.Segments {
		b, err := s.Load(seg.ID)
		if err != nil {
			return err
		}
		ext, err := record.ScanWith(b, seg.ID, record.ScanOptions{Closed: true})
		if err != nil || ext.End != int(seg.End) || ext.Batch != seg.Batch || seg.Batch > s.Last {
			c.judge.Errorf("segment %d of a former life: %+v %v, but the source says %+v, last %d", seg.ID, ext, err, seg, s.Last)
		}
		all[seg.ID] = &copied{bytes: b, to: seg.End, sealed: seg.End, batch: seg.Batch, whole: true, closed: true}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return c.broken
	}
	c.src, c.segs, c.safe = s, all, s.Last
	for id := range all {
		c.used[id] = true
	}
	c.watermark.Store(uint64(s.Last))
	c.over.Go(c.run)
	return nil
}

// Open makes room, unless it is told not to.
func (c *Copies) Open(_ context.Context, id record.SegmentID, memory []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return c.late("Open")
	case c.broken != nil:
		return c.broken
	case c.noRoom != 0:
		c.noRoom--
		return errRefused
	case c.used[id]:
		c.judge.Errorf("segment %d is opened, but there was one with that id", id)
	case len(memory) != c.src.SegmentBytes:
		c.judge.Errorf("segment %d is opened with %d bytes of memory", id, len(memory))
	}
	c.used[id] = true
	c.segs[id] = &copied{memory: memory, bytes: make([]byte, len(memory))}
	c.safe = c.Watermark()
	return nil
}

// late tells of a call after Close.
func (c *Copies) late(what string) error {
	c.judge.Errorf("%s is called after Close", what)
	return errOver
}

// Sealed notes what is to be copied.
func (c *Copies) Sealed(id record.SegmentID, from, to uint32, n record.BatchID, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.segs[id]
	switch {
	case c.closed:
		c.late("Sealed")
		return
	case s == nil || s.memory == nil:
		c.judge.Errorf("batch %d is sealed in segment %d, which is not open", n, id)
		return
	case from != s.sealed || to <= from || s.closed || n <= s.batchSealed():
		c.judge.Errorf("batch %d is sealed in segment %d from %d to %d, behind %+v", n, id, from, to, s.last())
		return
	}
	s.sealed, s.closed = to, closed
	s.queue = append(s.queue, piece{from, to, n, closed})
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

func (s *copied) last() piece {
	if len(s.queue) > 0 {
		return s.queue[len(s.queue)-1]
	}
	return piece{to: s.to, n: s.batch, closed: s.whole}
}

func (s *copied) batchSealed() record.BatchID { return s.last().n }

// Watermark is the batch up to which all are copied.
func (c *Copies) Watermark() record.BatchID { return record.BatchID(c.watermark.Load()) }

// Drop forgets segments, unless it is told not to.
func (c *Copies) Drop(ctx context.Context, ids ...record.SegmentID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return c.late("Drop")
	case c.broken != nil:
		return c.broken
	case ctx.Err() != nil:
		return ctx.Err()
	case c.noDrops != 0:
		c.noDrops--
		return errRefused
	}
	for _, id := range ids {
		s := c.segs[id]
		if s != nil && s.sealed > 0 && (!s.whole || s.batch > c.Watermark()) {
			c.judge.Errorf("segment %d is dropped at watermark %d, with %+v", id, c.Watermark(), s.last())
		}
		delete(c.segs, id)
		c.dropped++
	}
	c.safe = c.Watermark()
	return nil
}

// Close ends it.
func (c *Copies) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return fmt.Errorf("twice: %w", errOver)
	}
	c.closed = true
	c.mu.Unlock()
	close(c.stop)
	c.over.Wait()
	return nil
}
