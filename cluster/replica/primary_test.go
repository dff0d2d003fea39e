package replica

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/await"
)

const testSegment = 256 << 10

// whole fetches the bytes that a node has of a segment.
func (c *cluster) whole(id view.NodeID, segment record.SegmentID) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := c.caller.Stream(ctx, id, MethodFetch, FetchRequest{Log: testLog, Segment: segment, Cut: AllBatches, Whole: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var all []byte
	for {
		var part FetchPart
		b, last, err := s.Next(&part)
		if err != nil {
			return nil, err
		}
		if last {
			return all, nil
		}
		all = append(all, b...)
	}
}

// copiesOf counts the nodes whose replica of a segment is the same as the log's, up
// to the last of its seals.
func (c *cluster) copiesOf(w *writer, segment record.SegmentID) int {
	c.t.Helper()
	w.mu.Lock()
	want := w.segments[segment][:w.ends[segment]]
	w.mu.Unlock()
	n := 0
	for id, node := range c.nodes {
		if !node.up {
			continue
		}
		got, err := c.whole(id, segment)
		switch {
		case err != nil:
			c.t.Logf("%s gives nothing of segment %d: %v", id, segment, err)
		case bytes.Equal(got, want):
			n++
		}
	}
	return n
}

// checkCopies fails unless every segment has at least so many copies. Where a backup was given up, as on a machine that leaves it no
// core for seconds, they may still be on their way to another.
func (c *cluster) checkCopies(w *writer, copies int) {
	c.t.Helper()
	few := c.lacking(w, copies)
	if len(few) > 0 && (c.book.gaveUp() || w.p.Metrics().Replaced > 0) {
		c.settled(w, copies)
		few = c.lacking(w, copies)
	}
	for id, n := range few {
		c.t.Errorf("segment %d has %d copies, want %d", id, n, copies)
	}
}

// lacking are the segments that have fewer copies, with how many they have.
func (c *cluster) lacking(w *writer, copies int) map[record.SegmentID]int {
	c.t.Helper()
	few := map[record.SegmentID]int{}
	for id, end := range w.ends {
		if end == 0 {
			continue
		}
		if n := c.copiesOf(w, id); n < copies {
			few[id] = n
		}
	}
	return few
}

func modes(t *testing.T, test func(t *testing.T, mode Mode)) {
	for _, mode := range []Mode{OneSided, RPC} {
		t.Run(string(mode), func(t *testing.T) { test(t, mode) })
	}
}

// A process may die after the first of its backups was noted and before it had a segment.
func TestALogWithoutSegmentsAndWithTooFewBackupsBegins(t *testing.T) {
	c := newCluster(t, 3, 2, 64<<10)
	if err := c.book.AddBackup(t.Context(), c.members.now().Living[0].ID); err != nil {
		t.Fatal(err)
	}
	w := newWriter(t, 64<<10)
	c.primary(w, c.options(2))
	h := w.head()
	w.await(h.write(3, 100))
	if version, copies, backups := c.book.state(); version > 10 || copies != 2 || len(backups) < 2 {
		t.Errorf("the ledger has version %d, %d copies, and backups %v", version, copies, backups)
	}
	c.settled(w, 2)
}

func TestEveryBatchIsInAllCopiesWhenTheWatermarkHasPassedIt(t *testing.T) {
	modes(t, func(t *testing.T, mode Mode) {
		c := newCluster(t, 3, 2, testSegment)
		w := newWriter(t, testSegment)
		o := c.options(2)
		o.Mode = mode
		c.primary(w, o)
		var all sync.WaitGroup
		for i := range 2 {
			h := w.head()
			all.Go(func() {
				for j := range 3000 {
					n := h.write(1+j%5, 20+j%300)
					if j%(100+i) == 0 {
						w.await(n)
					}
				}
			})
		}
		all.Wait()
		w.await(w.last)
		if n := w.p.Watermark(); n != w.last {
			t.Fatalf("the watermark is %d, and %d batches were sealed", n, w.last)
		}
		c.checkCopies(w, 2)
		await.True(t, "segments are closed", func() bool { return w.p.Metrics().Closed == len(w.closed) })
	})
}

// A batch that comes alone waits for no other: it is one write to each backup. Batches that come while
// writes are in flight go with the next one.
func TestBatchesGatherWhileWritesAreInFlightAndOtherwiseGoAtOnce(t *testing.T) {
	c := newCluster(t, 2, 2, 1<<20)
	w := newWriter(t, 1<<20)
	o := c.options(2)
	device, err := c.device("primary")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = device.Close() })
	o.Device = device
	c.primary(w, o)
	h := w.head()
	w.await(h.write(1, 20))
	writes := func(batches int, each func(record.BatchID)) uint64 {
		before, err := device.Metrics()
		if err != nil {
			t.Fatal(err)
		}
		for range batches {
			each(h.write(1, 20))
		}
		w.await(w.last)
		after, err := device.Metrics()
		if err != nil {
			t.Fatal(err)
		}
		return after.Operations - before.Operations
	}
	const batches = 1000
	if n := writes(batches, w.await); n < 2*batches {
		t.Errorf("%d batches, each alone, went to two backups with %d writes", batches, n)
	}
	if n := writes(batches, func(record.BatchID) {}); n >= 2*batches {
		t.Errorf("%d batches at once went to two backups with %d writes", batches, n)
	}
}

func TestABatchLargerThanOneWriteArrivesWhole(t *testing.T) {
	modes(t, func(t *testing.T, mode Mode) {
		c := newCluster(t, 2, 2, 1<<20)
		w := newWriter(t, 1<<20)
		o := c.options(2)
		o.Mode = mode
		c.primary(w, o)
		h := w.head()
		for range 10 {
			w.await(h.write(1, 300<<10))
		}
		c.checkCopies(w, 2)
	})
}

func TestANodeThatIsAloneAcknowledgesWhatItHasItself(t *testing.T) {
	c := newCluster(t, 0, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	h := w.head()
	for range 10 {
		w.await(h.write(1, 10))
	}
	if _, copies, _ := c.book.state(); copies != 0 {
		t.Fatalf("the ledger says %d copies", copies)
	}
	c.add("n1")
	c.add("n2")
	await.True(t, "the ledger says two copies", func() bool { _, n, _ := c.book.state(); return n == 2 })
	w.await(h.write(1, 10))
	c.checkCopies(w, 2)
}

func TestADroppedSegmentIsInNoRosterAndNoReplicaIsLeft(t *testing.T) {
	c := newCluster(t, 2, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	h := w.head()
	for len(w.closed) < 3 {
		w.await(h.write(10, 1000))
	}
	spare := w.prepare() // Never written.
	ctx := context.Background()
	if err := w.p.Drop(ctx, 1, 2, spare); err != nil {
		t.Fatal(err)
	}
	for id := range c.nodes {
		a, err := w.p.survey(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		for _, gone := range []record.SegmentID{1, 2, spare} {
			if a.Roster.Segments.Contains(uint64(gone)) {
				t.Errorf("%s: segment %d is in roster %d", id, gone, a.Roster.Number)
			}
			for _, r := range a.Replicas {
				if r.Segment == gone {
					t.Errorf("%s has a replica of segment %d: %+v", id, gone, r)
				}
			}
		}
	}
	w.await(h.write(1, 10))
}

// interrupted is a cluster whose primary has ended, with all that it wrote at its backups, and an open head.
func interrupted(t *testing.T, mode Mode) (*cluster, *writer, *head) {
	t.Helper()
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	o := c.options(2)
	o.Mode = mode
	c.primary(w, o)
	h := w.head()
	for range 400 {
		h.write(5, 500)
	}
	w.await(w.last)
	if err := w.p.Close(); err != nil {
		t.Fatal(err)
	}
	w.p = nil
	return c, w, h
}

func TestAPrimaryGoesOnAfterARestartWithWhatItsBackupsHave(t *testing.T) {
	modes(t, func(t *testing.T, mode Mode) {
		c, w, h := interrupted(t, mode)
		// The node dies with a batch that its backups do not have, and closes its segments
		// when it comes back.
		h.write(1, 10)
		h.close()
		before, _, _ := c.book.state()
		o := c.options(2)
		o.Mode = mode
		c.primary(w, o)
		if w.p.Watermark() != w.last {
			t.Fatalf("the watermark begins at %d, want %d", w.p.Watermark(), w.last)
		}
		c.checkCopies(w, 2)
		if after, _, _ := c.book.state(); after <= before {
			t.Errorf("the replica version is %d, as before: what was open then is not stale", after)
		}
		h = w.head()
		w.await(h.write(1, 10))
	})
}

// Whoever watches a node asks while it starts, too.
func TestAPrimaryTellsOfItselfWhileItBegins(t *testing.T) {
	c, w, h := interrupted(t, RPC)
	h.close()
	o := c.options(2)
	o.Mode = RPC
	p := NewPrimary(o)
	t.Cleanup(func() { _ = p.Close() })
	var asking sync.WaitGroup
	asking.Go(func() { p.Metrics() })
	for range 100 {
		runtime.Gosched() // Nothing but the primary's own lock orders what both do.
	}
	w.begin(p)
	asking.Wait()
	if m := p.Metrics(); m.Closed != len(w.closed) {
		t.Errorf("it tells of %d segments of %d", m.Closed, len(w.closed))
	}
}

func TestADeposedPrimaryIsToldSo(t *testing.T) {
	modes(t, func(t *testing.T, mode Mode) {
		c := newCluster(t, 2, 2, testSegment)
		w := newWriter(t, testSegment)
		o := c.options(2)
		o.Mode = mode
		c.primary(w, o)
		h := w.head()
		w.await(h.write(1, 10))
		for id := range c.nodes {
			if _, err := c.caller.Call(context.Background(), id, MethodSurvey, SurveyRequest{Log: testLog, Fence: true}, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		acknowledged := w.p.Watermark()
		h.write(1, 10)
		await.True(t, "the log hears of it", func() bool { return w.failed.Load() != nil })
		if n := w.p.Watermark(); n != acknowledged {
			t.Fatalf("batch %d was acknowledged by a deposed primary", n)
		}
		if err := fmt.Sprint(*w.failed.Load()); err == "" {
			t.Error("no reason was given")
		}
	})
}
