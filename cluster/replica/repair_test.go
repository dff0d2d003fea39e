package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
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

// holderOf is a node that has a copy of an open segment.
func holderOf(p *Primary, id record.SegmentID) view.NodeID {
	return (*(*p.open.Load())[id].copies.Load())[0].node
}

// settled waits until all segments have their copies, and only living nodes are backups.
func (c *cluster) settled(w *writer, copies int) {
	c.t.Helper()
	await.True(c.t, fmt.Sprintf("every segment has %d copies, on nodes that live", copies), func() bool {
		m := w.p.Metrics()
		_, said, backups := c.book.state()
		for _, n := range backups {
			if !has(c.members.now().Living, n) {
				return false
			}
		}
		w.p.mu.Lock()
		least := w.p.leastCopies()
		w.p.mu.Unlock()
		return least >= copies && said == copies && m.Copies == copies
	})
}

func TestABackupThatDiesIsReplacedAndWritesGoOn(t *testing.T) {
	modes(t, func(t *testing.T, mode Mode) {
		c := newCluster(t, 4, 2, testSegment)
		w := newWriter(t, testSegment)
		o := c.options(2)
		o.Mode = mode
		c.primary(w, o)
		h := w.head()
		for len(w.closed) < 3 {
			w.await(h.write(10, 1000))
		}
		before, _, _ := c.book.state()
		dead := holderOf(w.p, h.id)
		c.kill(dead)
		for range 100 {
			w.await(h.write(10, 100))
		}
		if after, _, _ := c.book.state(); after <= before {
			t.Errorf("the replica version is %d: the dead node's replica is not stale", after)
		}
		c.members.leave(dead)
		c.settled(w, 2)
		w.await(w.last)
		c.checkCopies(w, 2)

		c.start(dead) // What it has from before does not confuse anybody.
		c.members.join(Member{ID: dead})
		for range 100 {
			w.await(h.write(10, 1000))
		}
		c.settled(w, 2)
		c.checkCopies(w, 2)
	})
}

func TestAReplacementDoesNotWaitForADeadNodeToCloseReplicas(t *testing.T) {
	c := newCluster(t, 4, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	c.caller.intercept(func(_ view.NodeID, method string) error {
		if method == MethodClose {
			return errors.New("the test loses it")
		}
		return nil
	})
	h := w.head()
	var dead view.NodeID
	for dead == "" {
		w.await(h.write(10, 1000))
		for _, s := range w.closed { // A node that did not hear of the close, and has an open one, too.
			for _, n := range w.p.holdersOf(s.ID) {
				if slices.Contains((*w.p.open.Load())[h.id].holders(), n) {
					dead = n
				}
			}
		}
	}
	c.kill(dead)
	w.await(h.write(1, 10))
	c.caller.intercept(nil)
	c.members.leave(dead)
	c.settled(w, 2)
	c.checkCopies(w, 2)
}

// holdersOf are the nodes that hold a closed segment.
func (p *Primary) holdersOf(id record.SegmentID) []view.NodeID {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.books.closed[id]; c != nil {
		return slices.Clone(c.holders)
	}
	return nil
}

func TestABackupWhoseLeaseEndsIsReplacedWhileWritesGoOn(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	h := w.head()
	w.await(h.write(1, 10))
	silent := holderOf(w.p, h.id)
	c.caller.hush(silent, true)
	for range 100 {
		w.await(h.write(1, 10)) // Its memory takes writes.
	}
	if !slices.Contains((*w.p.open.Load())[h.id].holders(), silent) {
		t.Fatalf("%s was replaced while its lease was alive and its memory took writes", silent)
	}
	c.members.leave(silent)
	c.settled(w, 2)
	if slices.Contains((*w.p.open.Load())[h.id].holders(), silent) {
		t.Fatalf("%s is still waited for", silent)
	}
	w.await(h.write(1, 10))
	c.checkCopies(w, 2)
}

func TestASilentBackupIsPassedOverWhenASegmentIsOpened(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	c.caller.hush("n1", true)
	for range 5 {
		id := w.prepare()
		if holders := (*w.p.open.Load())[id].holders(); slices.Contains(holders, "n1") || len(holders) != 2 {
			t.Fatalf("segment %d is open at %v", id, holders)
		}
	}
}

func TestANodeThatDidNotAnswerIsAskedAgainOnceItDoes(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	o := c.options(2)
	o.OpenTimeout = time.Minute // The others answer in time.
	c.primary(w, o)
	var silent atomic.Bool
	silent.Store(true)
	c.caller.intercept(func(to view.NodeID, _ string) error {
		if to == "n1" && silent.Load() {
			return context.DeadlineExceeded // As of one that does not answer in time.
		}
		return nil
	})
	for !has(w.p.unheard(c.members.now().Living), "n1") {
		w.prepare()
	}
	var asked atomic.Int32
	c.caller.observe(func(to view.NodeID, method string) {
		if to == "n1" && (method == MethodOpen || method == MethodConnect) {
			asked.Add(1)
		}
	})
	for range 10 {
		w.prepare()
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("a silent node was asked %d times more, and each time somebody waited", n)
	}
	silent.Store(false)
	await.True(t, "n1 has answered", func() bool { return len(w.p.unheard(c.members.now().Living)) == 0 })
	for range 20 { // One of three backups is left out each time, at random.
		if id := w.prepare(); slices.Contains((*w.p.open.Load())[id].holders(), "n1") {
			return
		}
	}
	t.Error("n1 was never asked again")
}

func TestAReplicaThatWasOpenedTooLateIsDroppedAgain(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	c.caller.late("n1", true) // It opens replicas, but nobody hears.
	for range 5 {
		w.prepare()
	}
	c.caller.late("n1", false)
	await.True(t, "n1 has no open replica", func() bool {
		open := 0
		for _, l := range c.nodes["n1"].backup.Logs() {
			open += l.Open
		}
		return open == 0
	})
	h := w.head()
	w.await(h.write(1, 10))
}

func TestABackupThatRefusesIsPassedOver(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	c.caller.intercept(func(to view.NodeID, method string) error {
		if to == "n2" && method == MethodOpen {
			return ErrFull
		}
		return nil
	})
	h := w.head()
	w.await(h.write(1, 10))
	if holders := (*w.p.open.Load())[h.id].holders(); slices.Contains(holders, "n2") || len(holders) != 2 {
		t.Fatalf("the segment is open at %v", holders)
	}
	c.checkCopies(w, 2)
}

func TestWithTooFewNodesThereAreFewerCopiesUntilTheyReturn(t *testing.T) {
	modes(t, func(t *testing.T, mode Mode) {
		c := newCluster(t, 2, 2, testSegment)
		w := newWriter(t, testSegment)
		o := c.options(2)
		o.Mode = mode
		c.primary(w, o)
		h := w.head()
		for len(w.closed) < 2 {
			w.await(h.write(10, 1000))
		}
		c.kill("n1")
		c.members.leave("n1")
		for len(w.closed) < 4 {
			w.await(h.write(10, 1000))
		}
		c.settled(w, 1)
		c.checkCopies(w, 1)
		c.kill("n2")
		c.members.leave("n2")
		stuck := h.write(1, 10)
		if w.p.Watermark() >= stuck {
			t.Fatal("a batch that nobody else has was acknowledged")
		}
		c.start("n2")
		w.await(stuck)
		c.start("n1")
		c.settled(w, 2)
		w.await(h.write(1, 10))
		c.checkCopies(w, 2)
	})
}

// replicaFiles are the names of replicas that are whole, not of those being written.
var replicaFiles = strings.Repeat("?", 16) + "-" + strings.Repeat("?", 16)

func TestAReplicaThatWentBadIsMadeAnew(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	h := w.head()
	for len(w.closed) < 2 {
		w.await(h.write(10, 1000))
	}
	var victim view.NodeID
	var path string
	await.True(t, "a closed replica is on disk", func() bool {
		for id, n := range c.nodes {
			if files, _ := filepath.Glob(filepath.Join(n.dir, "replicas", replicaFiles)); len(files) > 0 {
				victim, path = id, files[0]
				return true
			}
		}
		return false
	})
	had := w.p.Metrics().Copied
	damage(t, path)
	c.findCorrupt(victim)
	await.True(t, "another copy was made", func() bool { return w.p.Metrics().Copied > had })
	c.settled(w, 2)
	c.checkCopies(w, 2)
}

// It is back before anybody saw that it was gone, and answers as if it had never been a backup.
func TestReplicasThatANodeLostWithItsDiskAreMadeAnew(t *testing.T) {
	c := newCluster(t, 3, 2, testSegment)
	w := newWriter(t, testSegment)
	o := c.options(2)
	o.HealthEvery = time.Hour // Nobody asks whether replicas went bad.
	c.primary(w, o)
	h := w.head()
	for len(w.closed) < 4 {
		w.await(h.write(10, 1000))
	}
	await.True(t, "all replicas are closed", func() bool {
		w.p.mu.Lock()
		defer w.p.mu.Unlock()
		for _, s := range w.p.books.closed {
			if len(s.unclosed) > 0 {
				return false
			}
		}
		return true
	})
	loser := holderOf(w.p, h.id)
	held := w.p.held(loser)
	c.kill(loser)
	if err := os.RemoveAll(c.nodes[loser].dir); err != nil {
		t.Fatal(err)
	}
	c.start(loser)
	w.await(h.write(10, 100))
	if err := c.book.AddBackup(context.Background(), loser+"~1"); err != nil {
		t.Fatal(err)
	}
	c.members.haunt(loser+"~1", loser)
	c.settled(w, 2)
	w.await(w.last)
	c.checkCopies(w, 2)
	if copied := w.p.Metrics().Copied; held > 0 && copied == 0 {
		t.Fatalf("the node had %d closed replicas and none was made anew", held)
	}
}

// Nothing was written to it meanwhile, so no queue pair told that it was gone.
func TestANodeThatWasStartedAgainIsLinkedAgainWhenASegmentIsOpenedThere(t *testing.T) {
	c := newCluster(t, 2, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	h := w.head()
	w.await(h.write(10, 100))
	w.p.mu.Lock()
	before := w.p.books.links["n1"]
	w.p.mu.Unlock()
	c.kill("n1")
	c.start("n1")
	g := newOpenSegment(999, make([]byte, testSegment))
	w.p.mu.Lock()
	w.p.books.opening[g.id] = true
	w.p.mu.Unlock()
	open := func() (*stream, error) {
		return w.p.openStream(context.Background(), g, "n1", recruiting{patience: 10 * time.Second})
	}
	await.True(t, "a replica is opened by another link", func() bool {
		s, err := open()
		if err == nil {
			w.p.end(s)
		}
		return err == nil && s.link != before
	})
	if !before.broken.Load() {
		t.Error("the link to the former process is not broken")
	}
	w.await(h.write(10, 100))
	c.checkCopies(w, 2)
}

func damage(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], 5000); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b[:], 5000); err != nil {
		t.Fatal(err)
	}
}

// findCorrupt has a node look at all its closed replicas, one of which is not as it was written. Scrub itself counts
// those that are still there at its end: their primary may have replaced it by then.
func (c *cluster) findCorrupt(at view.NodeID) {
	c.t.Helper()
	b := c.nodes[at].backup
	b.Scrub()
	if n := b.Metrics().Corrupt; n != 1 {
		c.t.Fatalf("%d replicas were found to be corrupt, want 1", n)
	}
}

// recoverable asks, as a recovery would, all backups but as many as it may miss, and fails
// unless it finds every batch up to acknowledged. Nothing is fenced: the log goes on.
func (c *cluster) recoverable(random *rand.Rand, acknowledged record.BatchID, w *writer) {
	c.t.Helper()
	w.mu.Lock()
	adopted := slices.Clone(w.adopted)
	w.mu.Unlock()
	for {
		version, copies, backups := c.book.state()
		w.p.mu.Lock()
		known := w.p.books.number
		w.p.mu.Unlock()
		may := copies - 1
		var ask []view.NodeID
		random.Shuffle(len(backups), func(i, j int) { backups[i], backups[j] = backups[j], backups[i] })
		for _, n := range backups {
			if !c.isUp(n) {
				may--
			}
		}
		if may < 0 {
			return // A recovery would wait.
		}
		for _, n := range backups {
			switch {
			case !c.isUp(n):
			case may > 0:
				may--
			default:
				ask = append(ask, n)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		f, err := Survey(ctx, c.caller.Pool, ask, testLog, false)
		cancel()
		if v, n, b := c.book.state(); v != version || n != copies || !sameNodes(b, backups) || err != nil || len(f.Failed) > 0 {
			continue // The log has changed meanwhile, or somebody died.
		}
		f.Version = version
		c.checkAdopted(f, adopted)
		cut, err := f.Cut()
		if failed := err != nil || cut < acknowledged; failed && f.Roster.Number > known {
			continue // A node that answered last tells of segments that are newer than other answers.
		} else if failed {
			c.t.Errorf("a recovery that asks %v (version %d, %d copies) finds batches up to %d (%v); %d was acknowledged\nroster %+v\n%+v",
				ask, version, copies, cut, err, acknowledged, f.Roster, f.Answers)
		}
		c.checkPrefixes(f, w)
		return
	}
}

func (c *cluster) isUp(id view.NodeID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[id].up
}

func sameNodes(a, b []view.NodeID) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// checkPrefixes fails unless all that was found is what the log wrote.
func (c *cluster) checkPrefixes(f *Findings, w *writer) {
	c.t.Helper()
	for _, info := range f.Segments() {
		b, _, err := f.Whole(context.Background(), info.Segment)
		if err != nil {
			continue // Somebody died.
		}
		w.mu.Lock()
		mine := w.segments[info.Segment]
		same := bytes.Equal(b, mine[:len(b)])
		w.mu.Unlock()
		if !same {
			c.t.Errorf("a copy of segment %d differs from the segment", info.Segment)
		}
	}
}

func TestNothingAcknowledgedIsLostWhileBackupsDieAndReturn(t *testing.T) {
	modes(t, func(t *testing.T, mode Mode) {
		random := seeded(t)
		c := newCluster(t, 5, 2, testSegment)
		w := newWriter(t, testSegment)
		o := c.options(2)
		o.Mode = mode
		c.primary(w, o)
		stop := make(chan struct{})
		var writers sync.WaitGroup
		var written atomic.Uint64
		for range 2 {
			h := w.head()
			writers.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					n := h.write(1+i%7, 20+i%100)
					if i%4 == 0 {
						w.await(n)
					}
					written.Add(1)
				}
			})
		}
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					w.adopt(w.side(1 + i%50))
				}
			}
		})
		rounds := 10
		if testing.Short() {
			rounds = 5
		}
		var down []view.NodeID
		for range rounds {
			victim := view.NodeID(fmt.Sprintf("n%d", 1+random.IntN(5)))
			switch {
			case len(down) > 0 && (len(down) == 2 || random.IntN(2) == 0):
				c.start(down[0])
				down = down[1:]
			case !slices.Contains(down, victim):
				c.kill(victim)
				if random.IntN(2) == 0 {
					c.members.leave(victim) // Its lease ends at once, or only later.
				}
				down = append(down, victim)
			}
			for range 3 {
				c.recoverable(random, w.p.Watermark(), w)
			}
			at := w.p.Watermark()
			for _, n := range down {
				c.members.leave(n)
			}
			await.True(t, "writes go on", func() bool { return w.p.Watermark() > at+50 })
		}
		close(stop)
		writers.Wait()
		w.await(w.last)
		for _, n := range down {
			c.start(n)
		}
		c.settled(w, 2)
		c.checkCopies(w, 2)
		t.Logf("%d batches, %d side segments, version %d", written.Load(), len(w.adopted), w.p.Metrics().Version)
	})
}
