package replica

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/fabric"
)

// putWatcher sees what puts carry, and may change it.
type putWatcher struct {
	Caller
	change func(*PutRequest)

	shared, wired atomic.Int64 // puts of either kind
}

func (c *putWatcher) Call(ctx context.Context, to view.NodeID, method string, head any, bulk []byte, answer any) ([]byte, error) {
	if q, ok := head.(PutRequest); ok {
		if q.Share != nil {
			c.shared.Add(1)
			c.change(&q)
			head = q
		} else {
			c.wired.Add(1)
		}
	}
	return c.Caller.Call(ctx, to, method, head, bulk, answer)
}

// sharing is a cluster of three whose primary lends memory; change sees its puts.
func sharing(t *testing.T, change func(*PutRequest)) (*cluster, *writer, *putWatcher) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	o := c.options(2)
	calls := &putWatcher{Caller: o.Peers, change: change}
	o.Peers, o.SharedMemory, o.HealthEvery = calls, true, time.Hour // A survey that is overtaken by a put has it made once more.
	c.primary(w, o)
	return c, w, calls
}

// lentSide is a side whose bytes are lent, as those of a log are.
func (w *writer) lentSide(batches int) hlog.SourceSegment {
	g := w.side(batches)
	w.mu.Lock()
	defer w.mu.Unlock()
	g.Bytes = w.segments[g.ID]
	return g
}

func TestBackupsOfThisMachineTakeSideSegmentsFromMemory(t *testing.T) {
	c, w, calls := sharing(t, func(*PutRequest) {})
	var segs []hlog.SourceSegment
	for n := range 3 * thickenAtOnce { // Memory is used again.
		segs = append(segs, w.lentSide(n+1))
	}
	w.adopt(segs...)
	c.checkCopies(w, 2)
	c.checkAdopted(c.find(), w.adopted)
	if calls.shared.Load() != int64(2*len(segs)) || calls.wired.Load() != 0 {
		t.Errorf("%d segments went through memory %d times, and over the wire %d times", len(segs), calls.shared.Load(), calls.wired.Load())
	}
}

func TestABackupThatCannotMapMemoryGetsItsCopiesOverTheWire(t *testing.T) {
	c, w, calls := sharing(t, func(q *PutRequest) {
		far := *q.Share
		far.Mark = slices.Repeat([]byte{1}, len(far.Mark))
		q.Share = &far
	})
	for range 5 {
		w.adopt(w.lentSide(20))
	}
	c.checkCopies(w, 2)
	c.checkAdopted(c.find(), w.adopted)
	if tried := calls.shared.Load(); tried > 3 || calls.wired.Load() != 2*5 {
		t.Errorf("memory was offered %d times, and %d copies went over the wire", tried, calls.wired.Load())
	}
}

func TestACopyOfMemoryThatHasChangedIsRefused(t *testing.T) {
	c, w, _ := sharing(t, func(q *PutRequest) {
		m, err := fabric.OpenShared(*q.Share)
		if err != nil {
			t.Error(err)
			return
		}
		m.Bytes()[q.End/2] = 0xa5
		_ = m.Close()
	})
	g := w.lentSide(100)
	if err := w.p.Adopt(t.Context(), g); !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v", err)
	}
	if list := c.find().usable(g.ID); len(list) > 0 {
		t.Errorf("a recovery finds %+v", list)
	}
}

func TestWhatIsNotWholeIsNotLent(t *testing.T) {
	_, w, calls := sharing(t, func(*PutRequest) {})
	g := w.lentSide(100)
	g.Bytes = slices.Clone(g.Bytes)
	g.Bytes[g.End/2] ^= 1
	if err := w.p.Adopt(t.Context(), g); !errors.Is(err, ErrCorrupt) || calls.shared.Load()+calls.wired.Load() > 0 {
		t.Errorf("%d puts: %v", calls.shared.Load()+calls.wired.Load(), err)
	}
}

func TestMemoryThatABackupMayStillReadIsNotUsedAgain(t *testing.T) {
	l := loans{bytes: 1000}
	defer l.close()
	a := l.take()
	backups, err := fabric.OpenShared(a.share)
	if err != nil {
		t.Fatal(err)
	}
	defer backups.Close()
	a.memory.Bytes()[0] = 1
	l.giveBack(a, true)
	b := l.take()
	b.memory.Bytes()[0] = 2
	if got := backups.Bytes()[0]; got != 1 {
		t.Errorf("a backup reads %d", got)
	}
	l.giveBack(b, false)
	if l.take() != b {
		t.Error("memory that nobody reads is not used again")
	}
}

func TestMemoryThatNobodyNeedsIsGivenBack(t *testing.T) {
	l := loans{bytes: 1000}
	defer l.close()
	a, b := l.take(), l.take()
	l.giveBack(a, false)
	l.expire()
	if len(l.free) != 1 {
		t.Errorf("%d are free while another is out, want the one that came back", len(l.free))
	}
	l.giveBack(b, false)
	l.expire()
	if len(l.free) != 0 {
		t.Errorf("%d are kept", len(l.free))
	}
	if _, err := fabric.OpenShared(a.share); err == nil {
		t.Error("what was given back can be mapped")
	}
}
