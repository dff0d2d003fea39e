package replica

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/await"
)

// These are about processes of a primary that die and are started again, in whatever company.

// next is what the next life of the primary is told. It replicates by calls.
func (c *cluster) next() PrimaryOptions {
	o := c.options(c.copies)
	o.Mode = RPC
	return o
}

// live starts a primary on the log, and has it write something.
func (c *cluster) live(w *writer) *head {
	c.t.Helper()
	c.primary(w, c.next())
	h := w.head()
	w.await(h.write(1, 100))
	return h
}

// die ends the primary. The next one finds what it has written closed.
func (w *writer) die(h *head) {
	w.t.Helper()
	if err := w.p.Close(); err != nil {
		w.t.Log(err)
	}
	w.p = nil
	h.close()
}

// begin tries to begin for some time, and ends.
func (c *cluster) begin(w *writer, d time.Duration) error {
	p := NewPrimary(c.next())
	ctx, cancel := context.WithTimeout(c.t.Context(), d)
	defer cancel()
	return errors.Join(p.Begin(ctx, w.source()), p.Close())
}

// recover is what a recovery of the log would find at some nodes.
func (c *cluster) recover(nodes ...view.NodeID) (f *Findings, cut record.BatchID) {
	c.t.Helper()
	f, err := Survey(c.t.Context(), c.caller.Pool, nodes, testLog, false)
	if err != nil {
		c.t.Fatal(err)
	}
	f.Version, _, _ = c.book.state()
	if cut, err = f.Cut(); err != nil {
		c.t.Fatal(err)
	}
	return f, cut
}

// forget takes a node from the cluster, as if it had never been there.
func (c *cluster) forget(node view.NodeID) Member {
	c.members.mu.Lock()
	delete(c.members.known, node)
	c.members.mu.Unlock()
	c.members.leave(node)
	return c.nodes[node].member
}

// alone is a head of a log that nobody else has anything of.
func (w *writer) alone() *head {
	w.mu.Lock()
	id := w.nextID
	w.nextID++
	w.segments[id] = make([]byte, w.bytes)
	w.mu.Unlock()
	h := &head{w: w, spare: id}
	h.take()
	return h
}

// n1 has rosters of two lives that n2 has not heard of, and is away in the next.
func TestRostersOfALaterLifeHaveHigherNumbersWhoeverWasAsked(t *testing.T) {
	c := newCluster(t, 2, 2, testSegment)
	w := newWriter(t, testSegment)
	h := c.live(w)
	c.settled(w, 2)
	c.kill("n2")
	c.members.leave("n2")
	c.settled(w, 1)
	for range 2 {
		w.die(h)
		h = c.live(w)
	}
	w.die(h)
	c.kill("n1")
	c.members.leave("n1")
	c.start("n2")
	h = c.live(w)
	for n := len(w.closed); len(w.closed) < n+2; {
		w.await(h.write(10, 1000))
	}
	c.settled(w, 1)
	c.start("n1")
	c.settled(w, 2) // It takes segments of this life.
	acknowledged := w.p.Watermark()
	f, cut := c.recover("n1", "n2")
	var last record.BatchID
	for _, s := range f.Segments() {
		last = max(last, s.Batch)
	}
	if cut < acknowledged || last < acknowledged {
		t.Errorf("a recovery finds batches to %d, and reads to %d, of %d that were acknowledged", cut, last, acknowledged)
	}
}

func TestALifeThatHeardOfNoRosterOpensSegments(t *testing.T) {
	c := newCluster(t, 4, 2, testSegment)
	w := newWriter(t, testSegment)
	for range 3 {
		w.die(c.live(w))
	}
	var answers atomic.Bool
	c.caller.intercept(func(_ view.NodeID, method string) error {
		if method == MethodSurvey && !answers.Load() {
			return errors.New("it does not answer in time")
		}
		return nil
	})
	h := c.live(w)
	answers.Store(true)
	w.await(h.write(1, 100))
	c.settled(w, 2)
}

// The first segment of the log was cleaned, and the next life dies before it opens one.
func TestALifeThatHeardOfNoRosterForgetsNothing(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	h := c.live(w)
	for range 2 {
		w.die(h)
		h = c.live(w)
	}
	for len(w.closed) < 4 {
		w.await(h.write(10, 1000))
	}
	c.settled(w, 2)
	first := slices.Min(slices.Collect(maps.Keys(w.closed)))
	if err := w.p.Drop(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	delete(w.closed, first)
	acknowledged := w.p.Watermark()
	w.die(h)
	c.caller.intercept(func(_ view.NodeID, method string) error {
		if method == MethodSurvey {
			return errors.New("it does not answer in time")
		}
		return nil
	})
	if err := c.begin(w, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, cut := c.recover("n1", "n2", "n3"); cut < acknowledged {
		t.Errorf("a recovery finds %d batches of %d that were acknowledged", cut, acknowledged)
	}
}

// n1 has a roster with many segments of a log that then had none and no backups, and that it takes part in again.
func TestALifeWithoutAnythingHasHigherRostersAsWell(t *testing.T) {
	c := newCluster(t, 1, 1, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.next())
	for range 20 {
		w.prepare()
	}
	n1 := c.forget("n1")
	await.True(t, "it is alone", func() bool {
		_, copies, backups := c.book.state()
		return copies == 0 && len(backups) == 0
	})
	if err := w.p.Close(); err != nil {
		t.Log(err)
	}
	c.primary(w, c.next())
	c.members.join(n1)
	h := w.head()
	w.await(h.write(1, 100))
	c.settled(w, 1)
	await.True(t, "n1 takes copies again", func() bool {
		_, copies, _ := c.book.state()
		return copies == 1
	})
	w.await(h.write(1, 100))
	if _, cut := c.recover("n1"); cut < w.p.Watermark() {
		t.Errorf("a recovery finds %d batches of %d that were acknowledged", cut, w.p.Watermark())
	}
}

func TestADropAndADeathDoNotChaseEachOther(t *testing.T) {
	c := newCluster(t, 2, 2, testSegment)
	w := newWriter(t, testSegment)
	h := c.live(w)
	for n := len(w.closed); len(w.closed) < n+2; {
		w.await(h.write(10, 1000))
	}
	c.settled(w, 2)
	var once sync.Once
	c.caller.intercept(func(to view.NodeID, method string) error {
		if to != "n2" {
			return nil
		}
		if method == MethodRoster {
			once.Do(func() { c.members.leave("n2") })
			await.Comes(func() bool {
				_, _, backups := c.book.state()
				return !slices.Contains(backups, "n2")
			})
		}
		return errors.New("out of reach")
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.p.Drop(ctx, 1); err != nil {
		t.Error(err)
	}
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	if n := len(slices.DeleteFunc(slices.Clone(c.book.story), func(s string) bool { return !strings.HasSuffix(s, " n2") })); n > 8 {
		t.Errorf("etcd was told %d times of a node that is gone", n)
	}
}

// A node that was alone notes that there are no copies, which is not the same as not to have been told.
func TestCopiesAreNotedOnlyWhenTheyAreMade(t *testing.T) {
	c := newCluster(t, 2, 2, testSegment)
	c.book.copies = 0
	w := newWriter(t, testSegment)
	h := w.alone()
	h.write(10, 1000)
	h.close()
	c.caller.intercept(func(_ view.NodeID, method string) error {
		if method == MethodPut {
			return errors.New("killed before that")
		}
		return nil
	})
	_ = c.begin(w, 300*time.Millisecond)
	if _, copies, _ := c.book.state(); copies != 0 {
		t.Fatalf("the ledger says %d copies, and there are none: %v", copies, c.book.story)
	}
	c.caller.intercept(nil)
	c.live(w)
	c.settled(w, 2)
	await.True(t, "the ledger says that there are copies", func() bool {
		_, copies, _ := c.book.state()
		return copies == 2
	})
}

// The roster of a log has segments that are open and in which nothing was written, and of which nobody has a copy after a restart.
func TestALogWhosePrimaryDiesWhileItBeginsCanBeRecovered(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	w.die(c.live(w))
	h := c.live(w)
	w.prepare()
	w.prepare()
	w.die(h)
	c.caller.intercept(func(_ view.NodeID, method string) error {
		if method == MethodRoster {
			return errors.New("killed before that")
		}
		return nil
	})
	before, _, _ := c.book.state()
	if err := c.begin(w, 500*time.Millisecond); err == nil {
		t.Fatal("it begins though nobody stores its roster")
	}
	if after, _, _ := c.book.state(); after != before {
		t.Errorf("the replica version was %d and is %d", before, after)
	}
	c.recover("n1", "n2", "n3")

	c.caller.intercept(func(_ view.NodeID, method string) error {
		if now, _, _ := c.book.state(); method == MethodRoster && now > before || method == MethodSurvey {
			return errors.New("it hears of no roster, and is killed when it has raised the version")
		}
		return nil
	})
	if err := c.begin(w, 500*time.Millisecond); err == nil {
		t.Fatal("it begins though nobody stores its roster")
	}
	c.recover("n1", "n2", "n3")
}

func TestANodeThatHadNoCopiesWaitsForOthersThatThereAre(t *testing.T) {
	c := newCluster(t, 2, 2, testSegment)
	c.book.copies = 0
	w := newWriter(t, testSegment)
	h := w.alone()
	h.write(10, 1000)
	h.close()
	c.members.none()
	if err := c.begin(w, 200*time.Millisecond); err == nil || !strings.Contains(err.Error(), "no other node lives to keep a copy: 2 are known") {
		t.Errorf("it begins alone: %v", err)
	}
}

// The second node of a cluster may go again before it has a copy of everything.
func TestANodeThatWasAloneGoesOnWhenTheOneThatJoinedDies(t *testing.T) {
	c := newCluster(t, 1, 2, testSegment)
	c.book.copies = 0
	w := newWriter(t, testSegment)
	n1 := c.forget("n1")
	h := w.alone()
	h.write(10, 1000)
	h.close()
	c.caller.intercept(func(_ view.NodeID, method string) error {
		if method == MethodPut {
			return errors.New("the copy of a large log takes long")
		}
		return nil
	})
	c.primary(w, c.options(2))
	h = w.head()
	w.await(h.write(1, 100))
	c.members.join(n1)
	await.True(t, "what is open has a copy", func() bool {
		w.p.mu.Lock()
		defer w.p.mu.Unlock()
		return (*w.p.open.Load())[h.id].number((*stream).counts) == 1
	})
	w.await(h.write(1, 100))
	c.kill("n1")
	c.members.leave("n1")
	w.await(h.write(1, 100))
	await.True(t, "nobody counts on a node that is gone", func() bool { return !c.book.has("n1") })
}

func TestAnotherBackupStoresTheRosterThatOneRefuses(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	c.book.backups["n1"] = true
	c.caller.intercept(func(to view.NodeID, method string) error {
		if to == "n1" && slices.Contains([]string{MethodRoster, MethodOpen, MethodPut}, method) {
			return ErrFull
		}
		return nil
	})
	w := newWriter(t, testSegment)
	h := c.live(w)
	w.await(h.write(1, 100))
	if _, _, backups := c.book.state(); !slices.Equal(backups, []view.NodeID{"n1", "n2", "n3"}) {
		t.Errorf("the backups are %v", backups)
	}
}

func TestWhoWaitsForABackupThatRefusesLooksNowAndThen(t *testing.T) {
	c := newCluster(t, 2, 2, testSegment)
	w := newWriter(t, testSegment)
	o := c.next()
	var looks atomic.Int64
	members := o.Members
	o.Members = func() Membership {
		looks.Add(1)
		return members()
	}
	c.primary(w, o)
	w.await(w.head().write(1, 10))
	c.settled(w, 2)
	c.caller.intercept(func(to view.NodeID, method string) error {
		if to == "n2" && method == MethodOpen {
			return ErrFull
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	before := looks.Load()
	if err := w.p.Open(ctx, 999, make([]byte, testSegment)); err == nil || !strings.Contains(err.Error(), "enough backups") {
		t.Fatalf("a segment opens at too few backups: %v", err)
	}
	if n := looks.Load() - before; n > 10_000 {
		t.Errorf("it looked %d times within a second", n)
	}
}
