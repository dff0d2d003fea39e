package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/test/harness"
)

// movers is a cluster of processes under load, whose ranges move.
type movers struct {
	t *testing.T
	*harness.Cluster
	ctx    context.Context
	native *client.Client
	resp   *redis.ClusterClient

	stop   atomic.Bool
	all    sync.WaitGroup
	counts [movedKeys]atomic.Int64 // additions that were acknowledged to the native client
	wrote  [movedKeys]atomic.Int64 // the last value that was acknowledged to the RESP client
	done   atomic.Int64
	calm   atomic.Bool // no error is excused
}

const movedKeys = 400

func newMovers(t *testing.T, args ...string) *movers {
	t.Helper()
	args = append([]string{"--segment-size", "256KiB"}, args...)
	m := &movers{t: t, Cluster: harness.StartCluster(t, harness.ClusterOptions{Binary: binary, Nodes: 3, Fabric: "shm", Args: args})}
	m.calm.Store(true)
	var cancel context.CancelFunc
	m.ctx, cancel = context.WithTimeout(context.Background(), 5*harness.Patience)
	t.Cleanup(cancel)
	s := m.snapshot()
	var addrs []string
	for _, n := range s.Living() {
		addrs = append(addrs, s.Nodes[n].Address)
	}
	var err error
	m.native, err = client.Dial(m.ctx, "ostro://"+strings.Join(addrs, ","), client.Options{Retry: harness.Patience})
	m.must(err)
	redis.SetLogger(quiet{})
	m.resp = redis.NewClusterClient(&redis.ClusterOptions{Addrs: m.Addrs(), MaxRedirects: 20, ReadTimeout: 30 * time.Second})
	for n := range 3 {
		m.all.Go(func() { m.count(n) })
		m.all.Go(func() { m.set(n) })
	}
	t.Cleanup(func() {
		m.rest()
		_ = m.native.Close()
		_ = m.resp.Close()
	})
	return m
}

func (m *movers) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *movers) snapshot() *meta.Snapshot {
	m.t.Helper()
	s, err := m.Metadata()
	m.must(err)
	return s
}

// rest ends the load.
func (m *movers) rest() {
	m.stop.Store(true)
	m.all.Wait()
}

// count adds to counters; an addition counts once whatever happens.
func (m *movers) count(worker int) {
	for i := worker; !m.stop.Load(); i++ {
		n := i * 7 % movedKeys
		if _, err := m.native.Add(m.ctx, 0, fmt.Append(nil, "count:", n), 1).Wait(); err != nil {
			m.t.Errorf("add to count:%d: %v", n, err)
			return
		}
		m.counts[n].Add(1)
		m.done.Add(1)
	}
}

// set writes ever larger numbers, each key by one worker alone, and reads what it wrote.
func (m *movers) set(worker int) {
	for i := 0; !m.stop.Load(); i++ {
		n := (i*3 + worker) % (movedKeys - movedKeys%3)
		key := fmt.Sprint("set:", n)
		if err := m.resp.Set(m.ctx, key, i, 0).Err(); err != nil {
			if m.calm.Load() {
				m.t.Errorf("SET %s: %v", key, err)
				return
			}
			continue
		}
		m.wrote[n].Store(int64(i))
		got, err := m.resp.Get(m.ctx, key).Int64()
		switch {
		case err == nil && got != int64(i), errors.Is(err, redis.Nil):
			m.t.Errorf("%s is %d (%v) after %d was written", key, got, err, i)
			return
		case err != nil && m.calm.Load():
			m.t.Errorf("GET %s: %v", key, err)
			return
		}
		m.done.Add(1)
	}
}

// beyond waits until so much more was answered.
func (m *movers) beyond(more int64) {
	m.t.Helper()
	want := m.done.Load() + more
	m.must(harness.Eventually("clients are answered", func() error {
		if m.t.Failed() {
			return harness.Hopeless{}
		}
		if n := m.done.Load(); n < want {
			return fmt.Errorf("%d of %d", n, want)
		}
		return m.Crashed()
	}))
}

// verify ends the load and finds all that was acknowledged.
func (m *movers) verify() {
	m.t.Helper()
	m.rest()
	for n := range movedKeys {
		got, err := m.native.Get(m.ctx, 0, fmt.Append(nil, "count:", n)).Wait()
		if want := m.counts[n].Load(); err != nil && !(want == 0 && errors.Is(err, client.ErrNotFound)) || err == nil && got.Int() != want {
			m.t.Errorf("count:%d is %d, not %d (%v)", n, got.Int(), want, err)
		}
		want := m.wrote[n].Load()
		value, err := m.resp.Get(m.ctx, fmt.Sprint("set:", n)).Int64()
		if err != nil && !(want == 0 && errors.Is(err, redis.Nil)) || value < want {
			m.t.Errorf("set:%d is %d, not %d (%v)", n, value, want, err)
		}
	}
}

// slots are some of a node's.
func slotsOf(s *meta.Snapshot, n view.NodeID, share float64) view.Ranges {
	first := s.Map.Ranges(n)[0]
	a, b := first.First.Slot(), first.Last.Slot()
	return view.RangesOf(view.SlotsRange(a, a+uint16(float64(b-a)*share)))
}

func (m *movers) migrate(from, to view.NodeID, ranges view.Ranges, o meta.MigrationOptions) uint64 {
	m.t.Helper()
	store, err := m.Meta(m.ctx)
	m.must(err)
	one, err := store.Migrate(m.ctx, meta.MigrationRequest{Source: from, Target: to, Ranges: ranges, Options: o})
	m.must(err)
	return one.ID
}

func (m *movers) cancel(id uint64) {
	m.t.Helper()
	store, err := m.Meta(m.ctx)
	m.must(err)
	err = store.CancelMigration(m.ctx, id)
	if s, e := m.Metadata(); err != nil && e == nil && s.Migrations[id].Stage.Ended() {
		return // It was faster.
	}
	m.must(err)
}

// until waits for a stage of a migration.
func (m *movers) until(id uint64, what string, enough func(*meta.Snapshot) bool) *meta.Snapshot {
	m.t.Helper()
	var s *meta.Snapshot
	m.must(harness.Eventually(fmt.Sprintf("migration %d %s", id, what), func() (err error) {
		if s, err = m.Metadata(); err == nil && !enough(s) {
			err = fmt.Errorf("it is %+v, %+v", s.Migrations[id], s.Moves[id])
		}
		return errors.Join(err, m.Crashed())
	}))
	return s
}

func (m *movers) ended(id uint64) meta.Migration {
	m.t.Helper()
	return m.until(id, "ends", func(s *meta.Snapshot) bool { return s.Migrations[id].Stage.Ended() }).Migrations[id]
}

func TestSlotsMoveBetweenProcessesAndNoClientSeesAnError(t *testing.T) {
	m := newMovers(t, "--cluster-lease", calmLease)
	m.beyond(2000)
	s := m.snapshot()
	moved := slotsOf(s, "node1", 0.5)
	// A chain: the second waits until the first has arrived.
	first := m.migrate("node1", "node2", moved, meta.MigrationOptions{})
	second := m.migrate("node2", "node3", moved, meta.MigrationOptions{PriorityPulls: meta.PriorityPullsSync})
	other := m.migrate("node3", "node1", slotsOf(s, "node3", 0.3), meta.MigrationOptions{PriorityPulls: meta.PriorityPullsNone})
	for _, id := range []uint64{first, second, other} {
		if got := m.ended(id); got.Stage != meta.Done {
			t.Fatalf("migration %d ended as %+v", id, got)
		}
	}
	m.beyond(1000)
	back := m.migrate("node3", "node1", moved, meta.MigrationOptions{Sample: true})
	m.until(back, "begins", func(s *meta.Snapshot) bool { return s.Migrations[back].Stage != meta.Wanted })
	m.cancel(back)
	if got := m.ended(back); got.Stage == meta.Failed {
		t.Fatalf("what was cancelled ended as %+v", got)
	}
	m.beyond(1000)
	m.verify()
}

// harm is what happens to a process in the middle of a migration.
type harm struct {
	victim view.NodeID
	signal syscall.Signal
	step   migrate.Step
}

func (h harm) String() string {
	who, how := "the source", "killed"
	if h.victim == "node2" {
		who = "the target"
	}
	if h.signal == syscall.SIGSTOP {
		how = "stopped"
	}
	return fmt.Sprintf("%s is %s at %s", who, how, h.step)
}

// harms are all of them, in some order.
func harms(random *rand.Rand) (all []harm) {
	for _, step := range migrate.Steps {
		for _, victim := range []view.NodeID{"node1", "node2"} {
			all = append(all, harm{victim, syscall.SIGKILL, step}, harm{victim, syscall.SIGSTOP, step})
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// Three kinds of harm of all, others each time; with OSTRO_HARMS=all, all of them.
func TestAMigrationWhoseProcessesAreKilledOrStoppedLosesNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	all := harms(rand.New(rand.NewPCG(seed, 0)))
	if os.Getenv("OSTRO_HARMS") != "all" { // Each takes some seconds.
		all = all[:3]
	}
	for _, h := range all {
		t.Run(h.String(), h.happens)
	}
}

func (h harm) happens(t *testing.T) {
	m := newMovers(t, "--migrate-halt-at", string(h.step), "--cluster-lease", "5s") // Nobody else is to die, on any machine.
	m.beyond(500)
	id := m.migrate("node1", "node2", slotsOf(m.snapshot(), "node1", 0.5), meta.MigrationOptions{Sample: h.step == migrate.AfterSample})
	m.until(id, "halts", func(s *meta.Snapshot) bool {
		return h.step == migrate.Completed && s.Migrations[id].Stage == meta.Done || strings.HasSuffix(s.Moves[id].Waiting, string(h.step))
	})
	m.calm.Store(false)
	victim := m.Node(h.victim)
	if h.signal == syscall.SIGSTOP {
		m.must(victim.Pause())
	} else {
		victim.Kill()
	}
	m.until(id, "is over, and the death too", func(s *meta.Snapshot) bool {
		return s.Migrations[id].Stage.Ended() && !s.IsAlive(h.victim) && len(s.Dead()) == 0 && len(s.Recoveries) == 0
	})
	m.beyond(300)
	for _, n := range m.Nodes {
		n.With("--migrate-halt-at", "")
	}
	if h.signal == syscall.SIGSTOP {
		victim.Resume()
	} else {
		m.must(victim.Start())
	}
	m.must(m.WaitHealthy())
	m.beyond(300)
	m.verify()
}
