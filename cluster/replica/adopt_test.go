package replica

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/await"
)

// side makes a side segment of so many batches, closed.
func (w *writer) side(batches int) hlog.SourceSegment {
	w.mu.Lock()
	id := w.nextID
	w.nextID++
	w.mu.Unlock()
	b := make([]byte, w.bytes)
	chain := record.NewChain(id)
	off := record.EncodeSegmentHeader(b, testLog, id, 0, uint32(w.bytes))
	chain.Add(record.PtrOf(b))
	for n := range batches {
		e := b[off:]
		off += record.Encode(e, &record.Header{Type: record.TypePut, Version: uint64(n + 1)}, fmt.Appendf(nil, "side-%d-%d", id, n), []byte(strings.Repeat("v", 100)), true)
		chain.Add(record.PtrOf(e))
		chain.PutSeal(b[off:], 0, n == batches-1)
		off += record.SealBytes
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.segments[id] = b
	return hlog.SourceSegment{ID: id, End: uint32(off)}
}

// adopt has side segments adopted, as a log does: until it is done, or the primary ends.
func (w *writer) adopt(segs ...hlog.SourceSegment) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := w.p.Adopt(ctx, segs...)
		if err == nil {
			break
		}
		if ctx.Err() != nil || w.p.ctx.Err() != nil {
			w.t.Error(err)
			return
		}
		rest(ctx, 10*time.Millisecond)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range segs {
		w.adopted = append(w.adopted, g.ID)
		w.closed[g.ID], w.ends[g.ID] = g, g.End
	}
}

// checkAdopted fails unless whole copies of all side segments are found.
func (c *cluster) checkAdopted(f *Findings, adopted []record.SegmentID) {
	c.t.Helper()
	for _, id := range adopted {
		if list := f.usable(id); len(list) == 0 || !list[0].info.Sealed || f.Roster.Opening.Contains(uint64(id)) {
			c.t.Errorf("side segment %d was adopted; a recovery finds %+v, roster %+v", id, list, f.Roster)
		}
	}
}

// find is what a recovery finds that asks all who live. Nothing is fenced.
func (c *cluster) find() *Findings {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var nodes []view.NodeID
	for id := range c.nodes {
		if c.isUp(id) {
			nodes = append(nodes, id)
		}
	}
	f, err := Survey(ctx, c.caller.Pool, nodes, testLog, false)
	if err != nil {
		c.t.Fatal(err)
	}
	f.Version, _, _ = c.book.state()
	return f
}

func TestSideSegmentsAreAdoptedBesideTheOrderOfBatches(t *testing.T) {
	modes(t, func(t *testing.T, mode Mode) {
		c := newCluster(t, 3, 2, testSegment)
		w := newWriter(t, testSegment)
		o := c.options(2)
		o.Mode = mode
		c.primary(w, o)
		h := w.head()
		for i := range 50 {
			n := h.write(3, 100)
			if i%10 == 0 {
				w.adopt(w.side(20), w.side(1))
			}
			w.await(n)
		}
		c.checkCopies(w, 2)
		f := c.find()
		c.checkAdopted(f, w.adopted)
		if cut, err := f.Cut(); err != nil || cut != w.last {
			t.Errorf("a recovery keeps batches up to %d of %d: %v", cut, w.last, err)
		}
		if m := w.p.Metrics(); m.Adopted != 10 || m.Watermark != w.last {
			t.Errorf("%d side segments are adopted, and the watermark is %d of %d", m.Adopted, m.Watermark, w.last)
		}
	})
}

func TestAnAdoptionThatEveryDiskRefusesSaysSoAndIsMissedByNobody(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	h := w.head()
	w.await(h.write(1, 10))
	var full atomic.Bool
	full.Store(true)
	c.caller.intercept(func(_ view.NodeID, method string) error {
		if method == MethodPut && full.Load() {
			return fmt.Errorf("%w: no space left on device", ErrFull)
		}
		return nil
	})
	g := w.side(10)
	if err := w.p.Adopt(t.Context(), g); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("got %v", err)
	}
	w.prepare() // The backups get a roster by this.
	w.await(h.write(1, 10))
	f := c.find()
	if !f.Roster.Opening.Contains(uint64(g.ID)) {
		t.Errorf("segment %d lacks copies; roster %+v", g.ID, f.Roster)
	}
	if cut, err := f.Cut(); err != nil || cut != w.last {
		t.Errorf("a recovery keeps batches up to %d of %d: %v", cut, w.last, err)
	}
	full.Store(false)
	w.adopt(g)
	c.checkAdopted(c.find(), w.adopted)
	c.checkCopies(w, 2)
}

func TestABackupThatDiesDuringAnAdoptionIsReplaced(t *testing.T) {
	modes(t, func(t *testing.T, mode Mode) {
		c := newCluster(t, 4, 2, testSegment)
		w := newWriter(t, testSegment)
		o := c.options(2)
		o.Mode = mode
		c.primary(w, o)
		h := w.head()
		w.await(h.write(1, 10))
		var dead atomic.Pointer[view.NodeID]
		c.caller.intercept(func(to view.NodeID, method string) error {
			if method == MethodPut && dead.CompareAndSwap(nil, &to) {
				c.kill(to)
				c.members.leave(to)
			}
			return nil
		})
		for range 3 {
			w.adopt(w.side(10), w.side(20))
		}
		w.await(h.write(1, 10))
		c.settled(w, 2)
		c.checkAdopted(c.find(), w.adopted)
		c.checkCopies(w, 2)
		c.start(*dead.Load())
		w.adopt(w.side(10))
		c.settled(w, 2)
		c.checkAdopted(c.find(), w.adopted)
	})
}

func TestAnAdoptionDoesNotWaitForTheAnswerOfANodeThatIsGone(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	h := w.head()
	w.await(h.write(1, 10))
	var asked, ended atomic.Bool
	c.caller.observe(func(to view.NodeID, method string) {
		if to == "n1" && method == MethodPut {
			asked.Store(true)
		}
	})
	c.caller.hush("n1", true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !ended.Load() { // Until it was n1's turn.
			w.adopt(w.side(10))
		}
	}()
	await.True(t, "n1 is asked for a copy", asked.Load)
	ended.Store(true)
	c.members.leave("n1")
	<-done
	c.checkAdopted(c.find(), w.adopted)
	c.checkCopies(w, 2)
}

func TestACorruptReplicaOfASideSegmentIsReplaced(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	g := w.side(200)
	w.adopt(g)
	had := w.p.Metrics().Copied
	var victim view.NodeID
	for id, n := range c.nodes {
		if files, _ := filepath.Glob(filepath.Join(n.dir, "replicas", replicaName(testLog, g.ID))); len(files) > 0 {
			victim = id
			damage(t, files[0])
		}
		if victim != "" {
			break
		}
	}
	c.findCorrupt(victim)
	await.True(t, "another copy was made", func() bool { return w.p.Metrics().Copied > had })
	c.settled(w, 2)
	c.checkCopies(w, 2)
	c.checkAdopted(c.find(), w.adopted)
}

func TestAnAdoptionThatEndsHalfWayIsGoneOnWithOrForgottenByTheNextLife(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		t.Run(fmt.Sprint("keeps=", keeps), func(t *testing.T) {
			c := newCluster(t, 3, 2, testSegment)
			w := newWriter(t, testSegment)
			c.primary(w, c.options(2))
			h := w.head()
			w.await(h.write(1, 10))
			g := w.side(10)
			var puts atomic.Int32
			c.caller.intercept(func(_ view.NodeID, method string) error {
				if method == MethodPut && puts.Add(1) > 1 {
					return ErrFull
				}
				return nil
			})
			if err := w.p.Adopt(t.Context(), g); err == nil {
				t.Fatal("one copy is enough")
			}
			if err := w.p.Close(); err != nil {
				t.Fatal(err)
			}
			if f := c.find(); len(f.usable(g.ID)) != 1 || len(f.Missing()) > 0 {
				t.Errorf("%d copies are found, and %v are missing", len(f.usable(g.ID)), f.Missing())
			}
			c.caller.intercept(nil)
			w.p = nil
			h.close()
			if keeps {
				w.closed[g.ID], w.ends[g.ID] = g, g.End
			}
			c.primary(w, c.options(2))
			c.checkCopies(w, 2)
			if f := c.find(); len(f.usable(g.ID)) > 0 != keeps || f.Roster.Segments.Contains(uint64(g.ID)) != keeps {
				t.Errorf("%d copies are found; roster %+v", len(f.usable(g.ID)), f.Roster)
			}
		})
	}
}

func TestASideSegmentThatIsDroppedIsInNoRosterWhetherAdoptedOrNot(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	done, begun := w.side(10), w.side(10)
	w.adopt(done)
	c.caller.intercept(func(_ view.NodeID, method string) error {
		if method == MethodPut {
			return ErrFull
		}
		return nil
	})
	if err := w.p.Adopt(t.Context(), begun); err == nil {
		t.Fatal("no copy is enough")
	}
	if err := w.p.Drop(t.Context(), done.ID, begun.ID); err != nil {
		t.Fatal(err)
	}
	f := c.find()
	for _, id := range []record.SegmentID{done.ID, begun.ID} {
		if f.Roster.Segments.Contains(uint64(id)) || len(f.usable(id)) > 0 {
			t.Errorf("segment %d is still there: roster %+v, %v", id, f.Roster, f.usable(id))
		}
	}
}

func TestANodeThatIsAloneAdoptsWithoutCopiesAndMakesThemLater(t *testing.T) {
	c := newCluster(t, 0, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	w.await(w.head().write(1, 10)) // It knows that it is alone.
	w.adopt(w.side(10))
	c.add("n1")
	c.add("n2")
	c.settled(w, 2)
	c.checkCopies(w, 2)
	if f := c.find(); !slices.Contains(w.adopted, f.Segments()[0].Segment) && !slices.Contains(w.adopted, f.Segments()[1].Segment) {
		t.Errorf("segments %+v are found", f.Segments())
	}
	c.checkAdopted(c.find(), w.adopted)
}
