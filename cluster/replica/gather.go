package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// FetchOptions say what an heir reads, and what becomes of it.
type FetchOptions struct {
	Ranges view.Ranges
	Cut    record.BatchID
	// Floors are the log's: what is below them is not read.
	Floors []view.Floor
	// Workers is how many segments are read at a time; default 4.
	Workers int
	// Sink takes whole entries, one behind the other and 8-aligned, until it returns. Calls with the
	// same worker come one after the other. Entries may come twice, when a source
	// fails in the middle, and in any order.
	Sink func(worker int, entries []byte) error
	// Progress hears how far it is, now and then; it may be nil.
	Progress func(Progress)
	// Without are segments that may be missing; who says so knows that data is lost. Any other
	// that cannot be read fails the fetch.
	Without []record.SegmentID
}

// Progress is how far a Fetch is.
type Progress struct {
	Segments, SegmentsDone int
	Bytes, BytesDone       int64 // of segments, whether or not their entries were asked for
	Entries                uint64
}

const (
	// tries is how often a copy is asked for that only could not be reached.
	tries = 3
	// tryPause lets a node come back.
	tryPause = 100 * time.Millisecond
	// stallTimeout is how long a source may say nothing; while it waits for its turn it
	// says so every signOfLife.
	stallTimeout = 10 * time.Second
	signOfLife   = time.Second
)

// Fetch reads all entries of the log in the ranges up to the cut, from all who have
// copies at once. A copy that fails is replaced by another. A LostError names
// the segments of which none is left.
func (f *Findings) Fetch(ctx context.Context, o FetchOptions) error {
	if o.Workers <= 0 {
		o.Workers = 4
	}
	g := f.gathering(o)
	if len(g.lost.Segments) > 0 {
		return g.lost
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for worker := range o.Workers {
		all.Go(func() {
			if err := g.work(ctx, worker); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if len(g.lost.Segments) > 0 {
		return g.lost
	}
	return nil
}

// gathering is a Fetch under way.
type gathering struct {
	f *Findings
	o FetchOptions

	mu       sync.Mutex
	jobs     []*job
	progress Progress
	lost     *LostError
}

// job is a segment to read.
type job struct {
	id      record.SegmentID
	bytes   int64
	sources []*source
	reasons []error
}

// source is a copy to read it from.
type source struct {
	found
	tries int
}

// gathering finds out what to read from whom.
func (f *Findings) gathering(o FetchOptions) *gathering {
	g := &gathering{f: f, o: o, lost: &LostError{Log: f.Log}}
	assigned := map[view.NodeID]int64{} // bytes that each is asked for
	g.lost.Segments = f.missing(o.Without)
	for n := range f.Roster.Segments.All() {
		list := f.usable(record.SegmentID(n))
		if len(list) == 0 || list[0].info.End == 0 {
			continue
		}
		j := &job{id: record.SegmentID(n), bytes: int64(list[0].info.End)}
		// A copy that is shorter than another will do if it has all up to the cut.
		// What is safe, all that count have.
		needed := list[0].runs.lastUpTo(uint64(o.Cut))
		for _, c := range list {
			if c.info.Sealed || uint64(c.info.Batch) >= needed {
				j.sources = append(j.sources, &source{found: c, tries: tries})
			}
		}
		j.spread(assigned)
		g.jobs = append(g.jobs, j)
		g.progress.Segments++
		g.progress.Bytes += j.bytes
	}
	return g
}

// work reads one segment after the other.
func (g *gathering) work(ctx context.Context, worker int) error {
	for ctx.Err() == nil {
		j := g.next()
		if j == nil {
			return nil
		}
		if err := g.gather(ctx, worker, j); err != nil {
			return err
		}
	}
	return nil
}

func (g *gathering) next() *job {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.jobs) == 0 {
		return nil
	}
	j := g.jobs[0]
	g.jobs = g.jobs[1:]
	return j
}

// gather reads one segment from one of its sources after the other until one
// gave all of it. Its error ends everything: the sink's, or the end of ctx.
func (g *gathering) gather(ctx context.Context, worker int, j *job) error {
	for ctx.Err() == nil {
		s := g.pick(j)
		if s == nil {
			g.lose(j)
			return nil
		}
		entries, err := g.read(ctx, worker, j, s)
		var sunk *sinkError
		switch {
		case err == nil:
			g.done(j, entries)
			return nil
		case errors.As(err, &sunk):
			return sunk.err
		case ctx.Err() != nil:
			return nil
		}
		g.f.refused(ctx, &s.found, err)
		g.failed(j, s, err)
		if s.tries > 0 {
			background.Pause(ctx, tryPause)
		}
	}
	return nil
}

// spread puts the source first that is asked for least so far. All heirs find the same
// order: a segment that one has asked for is in its backup's memory when the
// others do.
func (j *job) spread(assigned map[view.NodeID]int64) {
	if len(j.sources) == 0 {
		return
	}
	slices.SortStableFunc(j.sources, func(a, b *source) int {
		return cmp.Or(cmp.Compare(assigned[a.node], assigned[b.node]), cmp.Compare(a.node, b.node))
	})
	assigned[j.sources[0].node] += j.bytes
}

// pick chooses the first source of those that failed least.
func (g *gathering) pick(j *job) *source {
	g.mu.Lock()
	defer g.mu.Unlock()
	var best *source
	for _, s := range j.sources {
		if s.tries > 0 && (best == nil || s.tries > best.tries) {
			best = s
		}
	}
	return best
}

// failed notes why a source gave nothing. One that is damaged is not asked again.
func (g *gathering) failed(j *job, s *source, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.tries--
	if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNotFound) {
		s.tries = 0
	}
	if s.tries == 0 {
		j.reasons = append(j.reasons, err)
	}
}

func (g *gathering) lose(j *job) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Contains(g.o.Without, j.id) {
		return
	}
	g.lost.Segments = append(g.lost.Segments, j.id)
	g.lost.Reasons = append(g.lost.Reasons, j.reasons...)
}

func (g *gathering) done(j *job, entries uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.progress.SegmentsDone++
	g.progress.BytesDone += j.bytes
	g.progress.Entries += entries
	if g.o.Progress != nil {
		g.o.Progress(g.progress)
	}
}

// sinkError is an error of the sink's, which no other source would help.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return e.err.Error() }

// read reads a segment from one source.
func (g *gathering) read(ctx context.Context, worker int, j *job, s *source) (entries uint64, err error) {
	q := FetchRequest{Log: g.f.Log, Segment: j.id, Cut: g.o.Cut, Ranges: g.o.Ranges, Floors: g.o.Floors}
	a, err := g.f.stream(ctx, s.found, q, func(n int, bulk []byte) error {
		entries += uint64(n)
		if err := g.o.Sink(worker, bulk); err != nil {
			return &sinkError{err}
		}
		return nil
	})
	if err == nil && a.Entries != entries {
		err = fmt.Errorf("node %s sent %d entries of segment %d and speaks of %d: %w", s.node, entries, j.id, a.Entries, ErrInvalid)
	}
	if err == nil {
		g.f.told(ctx, &s.found, a)
	}
	return entries, err
}

// stream reads from a copy, and checks that it still has what it said it had.
func (f *Findings) stream(ctx context.Context, c found, q FetchRequest, take func(entries int, bulk []byte) error) (a FetchAnswer, err error) {
	s, err := f.pool.Stream(ctx, c.node, MethodFetch, q)
	if err != nil {
		return a, err
	}
	defer s.Close()
	s.Stall(stallTimeout)
	var bytes uint64
	for {
		var head FetchAnswer // A part's head says Entries, too.
		bulk, last, err := s.Next(&head)
		if err != nil {
			return a, err
		}
		if last {
			a = head
			break
		}
		if len(bulk) == 0 {
			continue
		}
		bytes += uint64(len(bulk))
		if err := take(int(head.Entries), bulk); err != nil {
			return a, err
		}
	}
	if a.Bytes != bytes {
		return a, fmt.Errorf("node %s sent %d bytes of segment %d and speaks of %d: %w", c.node, bytes, q.Segment, a.Bytes, ErrInvalid)
	}
	if q.Cut >= c.info.Batch && a.End < c.info.End {
		return a, fmt.Errorf("node %s has segment %d only up to %d, and had %d: %w", c.node, q.Segment, a.End, c.info.End, ErrCorrupt)
	}
	return a, nil
}

// Whole reads the bytes of a segment up to the last batch that is whole in the copy that
// reaches farthest, for who makes a log's files anew.
func (f *Findings) Whole(ctx context.Context, id record.SegmentID) (bytes []byte, a FetchAnswer, err error) {
	lost := &LostError{Log: f.Log, Segments: []record.SegmentID{id}}
	for _, c := range f.usable(id) {
		bytes = make([]byte, 0, c.info.End)
		a, err = f.stream(ctx, c, FetchRequest{Log: f.Log, Segment: id, Cut: AllBatches, Whole: true}, func(_ int, bulk []byte) error {
			bytes = append(bytes, bulk...)
			return nil
		})
		if err == nil {
			f.told(ctx, &c, a)
			return bytes, a, nil
		}
		if ctx.Err() != nil {
			return nil, a, err
		}
		f.refused(ctx, &c, err)
		lost.Reasons = append(lost.Reasons, err)
	}
	return nil, a, lost
}
