package hlog

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

// copies is what a log knows of its copies elsewhere, see Replicator. A log
// without a replicator uses none of it.
//
// Invariant: upTo moves after the marks that it stands for: see raise. So who
// finds that it has passed a segment's closing seal may give the segment's slot
// to another; nobody will raise the old one's mark there.
type copies struct {
	upTo  atomic.Uint64 // a BatchID: all up to it are in every copy
	begun bool          // the log may be appended to

	mu    sync.Mutex // one raises marks at a time
	waits []copyWait // of the background
}

// copyWait is somebody who waits for a batch to be copied.
type copyWait struct {
	n    record.BatchID
	over chan struct{}
}

// Copied is the batch up to which all are in every copy.
func (l *Log) Copied() record.BatchID { return record.BatchID(l.copies.upTo.Load()) }

// AtRest tells whether nothing is appended to s any more, nor copied from it, nor will be:
// it may be moved, taken apart and dropped.
func (l *Log) AtRest(s *Segment) bool {
	return !s.aside.Load() && l.Spillable(s)
}

// Spillable tells whether s may leave memory, if its file holds it: nothing is appended to it
// any more, nor copied from its memory. Side segments are pinned while they are.
func (l *Log) Spillable(s *Segment) bool {
	return s.Closed() && (l.opts.Replicator == nil || s.batch <= l.Copied())
}

// Begin hands what a former life left to the replicator, and returns when it is
// copied. All segments are adopted by then, and nothing was appended.
func (l *Log) Begin(ctx context.Context) error {
	r := l.opts.Replicator
	if r == nil {
		return nil
	}
	if err := l.ids.load(l); err != nil {
		return err
	}
	last := l.Last()
	if err := r.Begin(ctx, l.source(last)); err != nil {
		return fmt.Errorf("copy the log: %w", err)
	}
	if w := r.Watermark(); w < last {
		return fmt.Errorf("copy the log: the replicator has begun, but says that batches after %d of %d are not copied", w, last)
	}
	l.copies.mu.Lock()
	defer l.copies.mu.Unlock()
	l.copies.upTo.Store(max(l.copies.upTo.Load(), uint64(last)))
	l.copies.begun = true
	return nil
}

// source describes the log to its replicator.
func (l *Log) source(last record.BatchID) Source {
	s := Source{
		LogID: l.opts.LogID, SegmentBytes: l.opts.SegmentBytes, Heads: len(l.heads) + 1, Last: last,
		Load: l.loadByID, Free: l.loads.put, Advanced: l.advanced, Failed: l.copiesFailed,
	}
	for _, seg := range l.Segments() {
		seg.held.Store(true)
		s.Segments = append(s.Segments, SourceSegment{ID: seg.ID, End: seg.End(), Batch: seg.batch})
	}
	return s
}

func (l *Log) loadByID(id record.SegmentID) ([]byte, error) {
	s := l.ByID(id)
	if s == nil {
		return nil, ErrGone
	}
	if !s.Closed() {
		return nil, fmt.Errorf("segment %d is open", id)
	}
	if b := l.pinnedBytes(s); b != nil {
		return b, nil
	}
	return l.Load(s)
}

// advanced is called when the watermark has moved.
func (l *Log) advanced() {
	w := l.opts.Replicator.Watermark()
	if w <= l.Copied() {
		return
	}
	l.copies.raise(l, w)
	l.wakeWaiters()
}

// raise raises all marks up to batch w.
func (c *copies) raise(l *Log, w record.BatchID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if uint64(w) <= c.upTo.Load() {
		return
	}
	for _, h := range l.heads {
		h.copiedUpTo(w)
	}
	l.survivor.copiedUpTo(w)
	c.upTo.Store(uint64(w))
	c.dismiss(func(n record.BatchID) bool { return n <= w })
}

// dismiss ends the waits for batches of which over says so. The caller holds mu.
func (c *copies) dismiss(over func(record.BatchID) bool) {
	left := c.waits[:0]
	for _, w := range c.waits {
		if over(w.n) {
			close(w.over)
		} else {
			left = append(left, w)
		}
	}
	clear(c.waits[len(left):])
	c.waits = left
}

// wait gives a channel that is closed when batch n is copied, or never will be.
func (c *copies) wait(l *Log, n record.BatchID) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := copyWait{n, make(chan struct{})}
	if uint64(n) <= c.upTo.Load() || l.Err() != nil {
		close(w.over)
	} else {
		c.waits = append(c.waits, w)
	}
	return w.over
}

// awaitCopied waits until batch n is copied; false if it will not be, or if stop
// came first.
func (l *Log) awaitCopied(n record.BatchID, stop <-chan struct{}) bool {
	if l.opts.Replicator == nil {
		return true
	}
	select {
	case <-l.copies.wait(l, n):
	case <-stop:
	}
	return n <= l.Copied()
}

// AwaitCopied waits until batch n is in every copy; false if it will not be, or
// if the context ended first. It is for the background.
func (l *Log) AwaitCopied(ctx context.Context, n record.BatchID) bool {
	return l.awaitCopied(n, ctx.Done())
}

// copiesFailed ends all hope for copies.
func (l *Log) copiesFailed(err error) {
	err = fmt.Errorf("copies of the log cannot be made any more: %w", err)
	if l.fail(&failure{err, fmt.Errorf("nothing can be written: %w", err)}) {
		l.opts.Logger.Error("writes are refused", "error", err)
	}
	l.copies.mu.Lock()
	l.copies.dismiss(func(record.BatchID) bool { return true })
	l.copies.mu.Unlock()
	l.wakeWaiters()
	l.tellReady() // Who waits for room is to learn of it.
}
