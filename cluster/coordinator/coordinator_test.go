package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/coordinator"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/await"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

var etcd *meta.Embedded

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ostro-coordinator-")
	if err != nil {
		panic(err)
	}
	if etcd, err = meta.StartEmbedded(context.Background(), meta.EmbeddedConfig{Dir: dir, Log: quiet}); err != nil {
		panic(err)
	}
	code := await.Run(m)
	etcd.Close()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// world is a cluster whose nodes are members of the metadata and nothing else: backups
// answer as the test says, and heirs are done as soon as there is a plan.
type world struct {
	t       *testing.T
	meta    *meta.Store
	cache   *meta.Cache
	members map[view.NodeID]*meta.Member
	ends    map[view.NodeID]context.CancelFunc
	tasks   sync.WaitGroup

	mu      sync.Mutex
	silent  map[view.NodeID]bool
	lacking map[record.LogID][]record.SegmentID
	fenced  map[record.LogID]bool
	cut     record.BatchID // of the next plan
	idle    map[view.NodeID]bool
	carries bool // nodes carry migrations out by themselves
	wished  map[view.NodeID]meta.Wish
	grace   time.Duration
}

// wish asks for something to be done with a node, and fulfil waits until it is.
func (w *world) wish(n view.NodeID, what meta.Wish) {
	w.t.Helper()
	asked, err := w.meta.Wish(patience(w.t), n, what)
	w.must(err)
	if w.wished == nil {
		w.wished = map[view.NodeID]meta.Wish{}
	}
	w.wished[n] = asked
}

func (w *world) fulfil(n view.NodeID) error { return w.meta.Fulfil(patience(w.t), n, w.wished[n], nil) }

func newWorld(t *testing.T, settings meta.Settings) *world {
	t.Helper()
	w := &world{
		t: t, members: map[view.NodeID]*meta.Member{}, ends: map[view.NodeID]context.CancelFunc{},
		silent: map[view.NodeID]bool{}, lacking: map[record.LogID][]record.SegmentID{},
		fenced: map[record.LogID]bool{}, idle: map[view.NodeID]bool{}, grace: time.Millisecond,
	}
	name := strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())
	var err error
	w.meta, err = meta.Open(patience(t), meta.Config{Endpoints: []string{etcd.Addr()}, Cluster: name[max(0, len(name)-60):], Log: quiet, DialTimeout: time.Minute})
	w.must(err)
	_, err = w.meta.Configure(patience(t), settings)
	w.must(err)
	w.cache, err = w.meta.Follow(patience(t))
	w.must(err)
	t.Cleanup(func() {
		for n := range w.members {
			w.kill(n)
		}
		w.tasks.Wait()
		w.cache.Close()
		_ = w.meta.Close()
	})
	return w
}

// lasting are settings under which no lease ends by itself during a test.
func lasting(nodes int) meta.Settings {
	s := meta.DefaultSettings()
	s.LeaseMillis, s.MinNodes = 60_000, nodes
	return s
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

var logs record.LogID

// join makes a node a member that stands for coordinator, has copies at others, and takes what it inherits.
func (w *world) join(id view.NodeID, backups ...view.NodeID) {
	w.t.Helper()
	logs++
	m, err := w.meta.Join(patience(w.t), meta.Node{ID: id, Address: "nowhere", Log: logs, CapacityBytes: 1})
	w.must(err)
	for _, b := range backups {
		w.must(m.AddBackup(patience(w.t), b))
	}
	w.must(m.SetCopies(patience(w.t), min(2, len(backups))))
	ctx, cancel := context.WithCancel(context.Background())
	w.members[id], w.ends[id] = m, cancel
	w.tasks.Go(func() {
		_ = coordinator.Run(ctx, coordinator.Options{
			Member: m, Cache: w.cache, Survey: w, Log: quiet,
			Quiet: 200 * time.Millisecond, Patience: 300 * time.Millisecond, Retry: 20 * time.Millisecond, Grace: w.grace,
		})
	})
	w.tasks.Go(func() { w.inherit(ctx, m) })
	w.tasks.Go(func() { w.carry(ctx, m) })
}

// carry does what a node does for migrations, without any data.
func (w *world) carry(ctx context.Context, m *meta.Member) {
	self := m.Node.ID
	_, _ = w.cache.Wait(ctx, func(s *meta.Snapshot) bool {
		if !w.isCarrying() || w.isIdle(self) {
			return false
		}
		for _, mig := range s.Open(self) {
			switch {
			case mig.Stage == meta.Wanted && mig.Source == self && s.Ready(mig) == nil:
				_, _ = m.Move(ctx, mig.ID, meta.Asked{From: 1, FromSegment: 1, Incarnation: s.Incarnation(mig.Target)})
			case mig.Stage == meta.Moving && mig.Target == self:
				_ = m.CompleteMigration(ctx, mig.ID, meta.MigrationStats{})
			}
		}
		if old := s.Logs[m.Node.Log].Leaving; len(old) > 0 {
			_ = m.Retracted(ctx, old, 1, 1)
		}
		return false
	})
}

// inherit says of all parts with a plan that they are there.
func (w *world) inherit(ctx context.Context, m *meta.Member) {
	for {
		_, err := w.cache.Wait(ctx, func(s *meta.Snapshot) bool {
			if w.isIdle(m.Node.ID) {
				return false
			}
			for _, r := range s.Recoveries {
				for _, p := range r.Parts {
					if p.Heir == m.Node.ID && !p.Done && r.Plan != nil {
						_ = m.Recovered(ctx, meta.Share{Log: r.Log, Ranges: p.Ranges})
					}
				}
			}
			return false
		})
		if err != nil {
			return
		}
	}
}

func (w *world) isCarrying() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.carries
}

func (w *world) isIdle(n view.NodeID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.idle[n]
}

// kill ends a node as its lease does in etcd, without a word of its own.
func (w *world) kill(id view.NodeID) {
	if m := w.members[id]; m != nil {
		delete(w.members, id)
		_ = m.Lease.Close(patience(w.t))
		w.ends[id]()
	}
}

// hush has nodes answer no surveys.
func (w *world) hush(nodes ...view.NodeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range nodes {
		w.silent[n] = true
	}
}

// exclude has primaries make their copies elsewhere than at n.
func (w *world) exclude(n view.NodeID, primaries ...view.NodeID) {
	w.t.Helper()
	for _, p := range primaries {
		w.must(w.members[p].AddBackup(patience(w.t), "n3"))
		w.must(w.members[p].ExcludeBackup(patience(w.t), n))
	}
}

// Survey answers for all nodes.
func (w *world) Survey(_ context.Context, log record.LogID, nodes []view.NodeID, fence bool) coordinator.Findings {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := findings{answered: map[view.NodeID]bool{}, lacking: w.lacking[log]}
	s := w.cache.Snapshot()
	for _, n := range nodes {
		f.answered[n] = s.IsAlive(n) && !w.silent[n]
	}
	if fence {
		w.fenced[log] = true
		// What is found differs from survey to survey; what counts must not.
		w.cut++
		f.plan = &meta.Plan{Cut: w.cut, Roster: 1}
	}
	return f
}

type findings struct {
	answered map[view.NodeID]bool
	lacking  []record.SegmentID
	plan     *meta.Plan
}

func (f findings) Answered(n view.NodeID, _ uint64) bool { return f.answered[n] }
func (f findings) Lacking() []record.SegmentID           { return f.lacking }
func (f findings) Bytes() int64                          { return 1 }
func (f findings) Plan() (meta.Plan, error) {
	if f.plan == nil {
		return meta.Plan{}, errors.New("planned without a fence")
	}
	return *f.plan, nil
}

func (w *world) await(what string, enough func(*meta.Snapshot) bool) *meta.Snapshot {
	w.t.Helper()
	s, err := w.cache.Wait(patience(w.t), enough)
	if err != nil {
		s := w.cache.Snapshot()
		w.t.Fatalf("waited in vain for %s: %v\nliving %v, dead %v, coordinator %q, recoveries %+v, progress %v, wishes %+v",
			what, err, s.Living(), s.Dead(), s.Coordinator, s.Recoveries, s.Progress, s.Wishes)
	}
	return s
}

// settled is a cluster in which every place is served.
func settled(s *meta.Snapshot) bool {
	return !s.Map.IsZero() && len(s.Dead()) == 0 && len(s.Recoveries) == 0
}

// four is a cluster of four nodes, each with copies at the two that follow it.
func four(t *testing.T) *world {
	w := newWorld(t, lasting(4))
	w.join("n1", "n2", "n3")
	w.join("n2", "n3", "n4")
	w.join("n3", "n4", "n1")
	w.join("n4", "n1", "n2")
	w.await("owners", settled)
	return w
}

func TestTheSpaceIsDealtOutOnceEnoughNodesAreThere(t *testing.T) {
	w := newWorld(t, lasting(3))
	w.join("n1")
	w.join("n2")
	w.await("a coordinator", func(s *meta.Snapshot) bool { return s.Coordinator != "" })
	if s := w.cache.Snapshot(); !s.Map.IsZero() {
		t.Fatalf("two of three nodes have %v", s.Map)
	}
	w.join("n3")
	s := w.await("owners", settled)
	if got := fmt.Sprint(s.Map.Owners()); got != "[n1 n2 n3]" {
		t.Fatalf("owners are %s", got)
	}
}

func TestTheSpaceIsDealtOutOnceNoOtherNodeComes(t *testing.T) {
	w := newWorld(t, lasting(0))
	w.join("n1")
	w.join("n2")
	w.await("owners", settled)
}

func TestOfVeryManyNodesAsManyAreDealtTheSpaceAsOneStepTakes(t *testing.T) {
	w := newWorld(t, lasting(meta.MaxFirst+1))
	for i := range meta.MaxFirst { // They stand for nothing.
		logs++
		m, err := w.meta.Join(patience(t), meta.Node{ID: view.NodeID(fmt.Sprint("other", i)), Address: "nowhere", Log: logs, CapacityBytes: 2})
		w.must(err)
		t.Cleanup(func() { _ = m.Lease.Close(patience(t)) })
	}
	w.join("small")
	s := w.await("owners", func(s *meta.Snapshot) bool { return !s.Map.IsZero() })
	if got := len(s.Map.Owners()); got != meta.MaxFirst || len(s.Map.Ranges("small")) > 0 {
		t.Fatalf("%d nodes own something, and the smallest %v", got, s.Map.Ranges("small"))
	}
}

func TestADeadNodesKeysAreServedByOthers(t *testing.T) {
	w := four(t)
	log := w.cache.Snapshot().Nodes["n2"].Log
	w.kill("n2")
	w.await("a retired log", func(s *meta.Snapshot) bool { return s.Logs[log].Retired })
	s := w.await("heirs", settled)
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := fmt.Sprint(s.Map.Owners()); got != "[n1 n3 n4]" || !w.fenced[log] {
		t.Fatalf("owners are %s, fenced is %v", got, w.fenced)
	}
}

// An owner that died before it opened its log has nothing that anybody could lack.
func TestANodeThatSaidNothingIsTakenForDeadAfterTheGraceAndOneThatLeftAtOnce(t *testing.T) {
	w := newWorld(t, lasting(4))
	w.grace = time.Hour
	w.join("n1", "n2", "n3")
	w.join("n2", "n3", "n4")
	w.join("n3", "n4", "n1")
	w.join("n4", "n1", "n2")
	w.await("owners", settled)
	w.kill("n4")
	w.await("the end of n4's lease", func(s *meta.Snapshot) bool { return !s.IsAlive("n4") })
	left := w.members["n3"]
	delete(w.members, "n3")
	w.must(left.Leave(patience(t)))
	w.ends["n3"]()
	s := w.await("the end of n3", func(s *meta.Snapshot) bool { return len(s.Map.Ranges("n3")) == 0 && len(s.Recoveries) == 0 })
	if len(s.Map.Ranges("n4")) == 0 {
		t.Fatal("what n4 owned was taken before it must have known")
	}
}

func TestANodeThatDiesBeforeItWroteAnythingIsRecovered(t *testing.T) {
	w := four(t)
	logs++
	m, err := w.meta.Join(patience(t), meta.Node{ID: "n5", Address: "nowhere", Log: logs, CapacityBytes: 1})
	w.must(err)
	w.await("n5", func(s *meta.Snapshot) bool { return s.IsAlive("n5") })
	w.kill("n2")
	w.await("n5 as an heir", func(s *meta.Snapshot) bool { return len(s.Map.Ranges("n5")) > 0 })
	w.must(m.Lease.Close(patience(t)))
	s := w.await("heirs of both", settled)
	if got := fmt.Sprint(s.Map.Owners()); got != "[n1 n3 n4]" {
		t.Fatalf("owners are %s", got)
	}
}

func TestARecoveryWaitsForBackupsAndSaysForWhom(t *testing.T) {
	w := four(t)
	w.hush("n3", "n4") // All that n2 has.
	log := w.cache.Snapshot().Nodes["n2"].Log
	w.kill("n2")
	waits := func(s *meta.Snapshot) bool {
		return strings.Contains(s.Progress[log][meta.TheCoordinator].Stage, "waits for one of n2, n3, n4")
	}
	if s := w.await("word of whom it waits for", waits); s.Logs[log].Retired {
		t.Fatal("the log is retired, and nobody has a copy")
	}
	w.mu.Lock()
	delete(w.silent, "n4")
	w.mu.Unlock()
	w.await("heirs", settled)
}

func TestANodeThatComesBackInTimeIsNotRecovered(t *testing.T) {
	w := four(t)
	w.hush("n3", "n4")
	n := w.cache.Snapshot().Nodes["n2"]
	w.kill("n2")
	w.await("word of its death", func(s *meta.Snapshot) bool { return len(s.Progress[n.Log]) > 0 })
	_, err := w.meta.Join(patience(t), n)
	w.must(err)
	s := w.await("silence", func(s *meta.Snapshot) bool { return settled(s) && len(s.Progress) == 0 })
	if s.Logs[n.Log].Retired || len(s.Map.Ranges("n2")) == 0 {
		t.Fatalf("n2 has %v", s.Map.Ranges("n2"))
	}
}

func TestWhatNobodyHasIsGivenUpOnlyWithItsNode(t *testing.T) {
	w := four(t)
	log := w.cache.Snapshot().Nodes["n2"].Log
	w.lacking[log] = []record.SegmentID{7}
	w.kill("n2")
	w.await("word of what is missing", func(s *meta.Snapshot) bool {
		return strings.Contains(s.Progress[log][meta.TheCoordinator].Stage, "nobody has a copy of 1 of its segments")
	})
	w.wish("n2", meta.Wish{Act: meta.Remove, Lost: true})
	w.await("heirs", settled)
	w.exclude("n2", "n1", "n4")
	s := w.await("heirs without it", func(s *meta.Snapshot) bool { _, known := s.Nodes["n2"]; return settled(s) && !known })
	if len(s.Wishes) != 0 || len(s.Marks) != 0 {
		t.Fatalf("left are %v and %v", s.Wishes, s.Marks)
	}
}

// Whoever is coordinator dies after every single change of the metadata, and the next one goes on.
func TestAnyOtherNodeFinishesARecoveryWhereverItsCoordinatorDies(t *testing.T) {
	for changes := range 8 {
		t.Run(fmt.Sprint(changes), func(t *testing.T) {
			w := four(t)
			s := w.cache.Snapshot()
			first, base := s.Coordinator, s.Revision
			var victim view.NodeID = "n3"
			if first == victim {
				victim = "n4"
			}
			log := s.Nodes[victim].Log
			var plans sync.Map
			watch, stop := context.WithCancel(context.Background())
			defer stop()
			w.tasks.Go(func() {
				_, _ = w.cache.Wait(watch, func(s *meta.Snapshot) bool {
					if r := s.Recoveries[log]; r.Plan != nil {
						plans.Store(r.Plan.Cut, true)
					}
					return false
				})
			})
			w.kill(victim)
			if _, err := w.cache.Wait(patience(t), func(s *meta.Snapshot) bool {
				return s.Revision > base+int64(changes) || s.Logs[log].Retired && settled(s)
			}); err != nil {
				t.Fatal(err)
			}
			w.kill(first)
			s = w.await("two left with everything", func(s *meta.Snapshot) bool { return settled(s) && len(s.Map.Owners()) == 2 })
			stop()
			n := 0
			plans.Range(func(any, any) bool { n++; return true })
			if n > 1 {
				t.Fatalf("the recovery had %d plans", n)
			}
			if !s.Logs[log].Retired || s.Coordinator == first {
				t.Fatalf("the log is %+v, the coordinator %s", s.Logs[log], s.Coordinator)
			}
		})
	}
}

func TestACoordinatorThatFindsMostNodesGoneWaitsForThem(t *testing.T) {
	w := four(t)
	before := w.cache.Snapshot()
	// All stop, as when a cluster is shut down; none may take over from the others.
	for _, end := range w.ends {
		end()
	}
	w.tasks.Wait()
	for _, id := range before.Living() {
		w.kill(id)
	}
	w.await("nobody", func(s *meta.Snapshot) bool { return len(s.Alive) == 0 })
	for _, id := range before.Living() {
		m, err := w.meta.Join(patience(t), before.Nodes[id])
		w.must(err)
		ctx, cancel := context.WithCancel(context.Background())
		w.members[id], w.ends[id] = m, cancel
		w.tasks.Go(func() {
			_ = coordinator.Run(ctx, coordinator.Options{Member: m, Cache: w.cache, Survey: w, Log: quiet, Patience: time.Minute, Retry: 20 * time.Millisecond})
		})
	}
	s := w.await("all back", func(s *meta.Snapshot) bool { return settled(s) && s.Coordinator != "" })
	for _, id := range before.Living() {
		if s.Logs[before.Nodes[id].Log].Retired {
			t.Fatalf("%s was recovered while the cluster started", id)
		}
	}
}

func TestADrainedNodeMovesAllToOthersWhileItLives(t *testing.T) {
	w := four(t)
	w.mu.Lock()
	w.carries = true
	w.mu.Unlock()
	w.wish("n2", meta.Wish{Act: meta.Drain})
	s := w.await("word of who still counts on it", func(s *meta.Snapshot) bool {
		return strings.Contains(s.Wishes["n2"].Waiting, "have their copies made elsewhere")
	})
	if len(s.Map.Ranges("n2")) != 0 || !s.IsAlive("n2") || len(s.Recoveries) != 0 {
		t.Fatalf("n2 has %v, is alive: %v, recoveries: %v", s.Map.Ranges("n2"), s.IsAlive("n2"), s.Recoveries)
	}
	for _, m := range s.AllMigrations() {
		if m.Source != "n2" || m.Stage != meta.Done || m.Why != "n2 is drained" {
			t.Fatalf("%+v", m)
		}
	}
	w.exclude("n2", "n1", "n4")
	w.must(w.fulfil("n2"))
	w.wish("n2", meta.Wish{Act: meta.Remove})
	if err := w.fulfil("n2"); err == nil || !strings.Contains(err.Error(), "n2 is alive") {
		t.Fatalf("a living node was removed: %v", err)
	}
	w.wish("n2", meta.Wish{Act: meta.Add})
	w.must(w.fulfil("n2"))
	s = w.await("no mark", func(s *meta.Snapshot) bool { return !s.Draining("n2") })
	if len(s.Map.Ranges("n2")) != 0 {
		t.Fatalf("n2 was given %v, and nobody asked for it", s.Map.Ranges("n2"))
	}
	w.wish("n2", meta.Wish{Act: meta.Add, Share: true})
	w.must(w.fulfil("n2"))
	s = w.await("its share", settled)
	for _, n := range s.Living() {
		if share := s.Map.Ranges(n).Fraction(); math.Abs(share-0.25) > 0.02 {
			t.Fatalf("%s has %g of all", n, share)
		}
	}
}

func TestADrainingNodeThatDiesIsRecovered(t *testing.T) {
	w := four(t)
	w.mu.Lock()
	w.idle["n2"] = true // It moves nothing.
	w.mu.Unlock()
	w.wish("n2", meta.Wish{Act: meta.Drain})
	w.await("migrations", func(s *meta.Snapshot) bool { return len(s.Open("n2")) > 0 })
	w.kill("n2")
	w.await("word of who still counts on it", func(s *meta.Snapshot) bool {
		return strings.Contains(s.Wishes["n2"].Waiting, "have their copies made elsewhere")
	})
	w.exclude("n2", "n1", "n4")
	w.must(w.fulfil("n2"))
	if s := w.cache.Snapshot(); len(s.Map.Ranges("n2")) != 0 {
		t.Fatalf("n2 has %v", s.Map.Ranges("n2"))
	}
	w.wish("n2", meta.Wish{Act: meta.Remove})
	w.must(w.fulfil("n2"))
	w.await("oblivion", func(s *meta.Snapshot) bool { _, known := s.Nodes["n2"]; return !known })
}

func TestWhoCancelsAMigrationOfADrainCancelsTheDrain(t *testing.T) {
	w := four(t)
	w.mu.Lock()
	w.idle["n2"] = true
	w.mu.Unlock()
	w.wish("n2", meta.Wish{Act: meta.Drain})
	s := w.await("migrations", func(s *meta.Snapshot) bool { return len(s.Open("n2")) == 3 })
	for _, m := range s.Open("n2") {
		w.must(w.meta.CancelMigration(patience(t), m.ID))
	}
	if err := w.fulfil("n2"); err == nil || !strings.Contains(err.Error(), "was cancelled, so the rest was not done") {
		t.Fatalf("it was drained: %v", err)
	}
	w.await("no mark", func(s *meta.Snapshot) bool { return !s.Draining("n2") && len(s.Open("n2")) == 0 })
}

func TestTheLastNodeCannotBeDrained(t *testing.T) {
	w := newWorld(t, lasting(1))
	w.join("n1")
	w.await("owners", settled)
	w.wish("n1", meta.Wish{Act: meta.Drain})
	if err := w.fulfil("n1"); err == nil || !strings.Contains(err.Error(), "there is no other node") {
		t.Fatalf("it was: %v", err)
	}
}

// What is left alone has nobody to have copies at, and its writes would wait for them.
func TestANodeIsNotDrainedThatAloneHasCopiesOfWhatIsLeft(t *testing.T) {
	w := newWorld(t, lasting(2))
	w.join("n1")
	w.join("n2")
	w.await("owners", settled)
	w.wish("n2", meta.Wish{Act: meta.Drain})
	if err := w.fulfil("n2"); err == nil || !strings.Contains(err.Error(), "n1 would be alone") {
		t.Fatalf("it was: %v", err)
	}
	if w.cache.Snapshot().Draining("n2") {
		t.Error("it has a mark")
	}
}

func TestWhereNobodyHasCopiesANodeIsDrained(t *testing.T) {
	settings := lasting(1)
	settings.Replicas = 1
	w := newWorld(t, settings)
	w.mu.Lock()
	w.carries = true
	w.mu.Unlock()
	w.join("n1")
	w.join("n2")
	w.await("owners", settled)
	w.wish("n1", meta.Wish{Act: meta.Drain})
	w.must(w.fulfil("n1"))
	if s := w.cache.Snapshot(); len(s.Map.Ranges("n1")) != 0 {
		t.Errorf("n1 has %v", s.Map.Ranges("n1"))
	}
}

func TestAnHeirThatDiesHalfWayLeavesItsPartToOthers(t *testing.T) {
	w := four(t)
	w.mu.Lock()
	w.idle["n1"] = true
	w.mu.Unlock()
	log := w.cache.Snapshot().Nodes["n2"].Log
	w.kill("n2")
	w.await("all but n1", func(s *meta.Snapshot) bool {
		r, ok := s.Recoveries[log]
		if !ok || r.Plan == nil {
			return false
		}
		for _, p := range r.Parts {
			if p.Done == (p.Heir == "n1") {
				return false
			}
		}
		return true
	})
	w.kill("n1")
	s := w.await("heirs", settled)
	if got := fmt.Sprint(s.Map.Owners()); got != "[n3 n4]" {
		t.Fatalf("owners are %s", got)
	}
}

// Nobody could be told any more that a node which is no longer known is lost.
func TestANodeStaysKnownWhileARecoveryMayCountOnIt(t *testing.T) {
	w := four(t)
	w.join("n5")
	w.must(w.members["n2"].AddBackup(patience(t), "n5"))
	w.kill("n5")
	w.mu.Lock()
	w.idle["n1"] = true
	w.mu.Unlock()
	log := w.cache.Snapshot().Nodes["n2"].Log
	w.kill("n2")
	w.await("a recovery", func(s *meta.Snapshot) bool { _, going := s.Recoveries[log]; return going })
	w.wish("n5", meta.Wish{Act: meta.Remove, Lost: true})
	s := w.await("word of who counts on n5", func(s *meta.Snapshot) bool {
		_, known := s.Nodes["n5"]
		return !known || s.Wishes["n5"].Waiting != ""
	})
	if !s.Lost("n5") {
		t.Fatal("n5 is forgotten while n2 is being recovered")
	}
	w.kill("n1")
	w.await("heirs", settled)
	w.await("oblivion", func(s *meta.Snapshot) bool { _, known := s.Nodes["n5"]; return !known })
}

// Two that are lost for good and own nothing, as nodes that came last do, had copies of each other's logs. Nobody will ever
// make those copies elsewhere.
func TestNodesThatAreLostTogetherAreForgottenThoughTheyHadCopiesOfEachOther(t *testing.T) {
	w := four(t)
	w.join("n5", "n6", "n1")
	w.join("n6", "n5", "n1")
	w.kill("n5")
	w.kill("n6")
	for _, n := range []view.NodeID{"n5", "n6"} {
		w.wish(n, meta.Wish{Act: meta.Remove, Lost: true})
		w.must(w.fulfil(n))
	}
	s := w.await("oblivion", func(s *meta.Snapshot) bool { return len(s.Nodes) == 4 })
	for _, l := range s.Logs {
		if known := s.Nodes[l.Node]; known.ID == "" && !l.Retired {
			t.Errorf("the log of %s, which is forgotten, is not retired: others keep its copies for ever", l.Node)
		}
	}
}
