package e2e

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/test/harness"
)

// figures are a node's metrics, by name and labels.
func figures(n *harness.Node) (map[string]float64, error) {
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get("http://" + n.Admin + "/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	all := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			all[name] = v
		}
	}
	return all, err
}

// skewed is clients most of whose keys lie on one node. They draw keys whatever nodes do.
type skewed struct {
	stop chan struct{}
	all  sync.WaitGroup
	mu   sync.Mutex
	err  error
}

const (
	skewedKeys  = 4000
	skewedBatch = 25
)

func startSkewed(c *harness.Cluster, seed uint64) (*skewed, error) {
	s := &skewed{stop: make(chan struct{})}
	snapshot, err := c.Metadata()
	if err != nil {
		return nil, err
	}
	var hot, cold []string
	for i := 0; len(hot) < skewedKeys/4 || len(cold) < skewedKeys; i++ {
		key := fmt.Sprint("skewed:", i)
		if owner, _ := snapshot.Map.Owner(record.PlaceOf(0, []byte(key))); owner == "node1" {
			hot = append(hot, key)
		} else {
			cold = append(cold, key)
		}
	}
	redis.SetLogger(quiet{})
	for n := range uint64(2) {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), MaxRedirects: 20, ReadTimeout: 30 * time.Second})
		s.all.Go(func() {
			defer client.Close()
			s.work(client, rand.New(rand.NewPCG(seed, n)), hot, cold)
		})
	}
	return s, nil
}

// work has nine of ten operations on hot keys.
func (s *skewed) work(c *redis.ClusterClient, rng *rand.Rand, hot, cold []string) {
	for {
		select {
		case <-s.stop:
			return
		case <-time.After(time.Duration(rng.IntN(10)) * time.Millisecond): // Nodes are not to be busy, only unevenly used.
		}
		batch := c.Pipeline()
		for range skewedBatch {
			keys := hot
			if rng.IntN(10) == 0 {
				keys = cold
			}
			if key := keys[rng.IntN(len(keys))]; rng.IntN(4) == 0 {
				batch.Set(context.Background(), key, key, 0)
			} else {
				batch.Exists(context.Background(), key)
			}
		}
		if _, err := batch.Exec(context.Background()); err != nil {
			s.mu.Lock()
			s.err = cmp.Or(s.err, err)
			s.mu.Unlock()
			return
		}
	}
}

// end ends the load and says what went wrong.
func (s *skewed) end() error {
	close(s.stop)
	s.all.Wait()
	return s.err
}

// stretch is what nodes did between two looks at them.
type stretch struct {
	c      *harness.Cluster
	before []float64
}

func (s *stretch) commands() (all []float64, err error) {
	for _, n := range s.c.Nodes {
		f, err := figures(n)
		if err != nil {
			return nil, err
		}
		all = append(all, f["ostro_commands_total"])
	}
	return all, nil
}

// ratio is how many times the average the fullest node has done since the stretch began.
func (s *stretch) ratio() (float64, error) {
	now, err := s.commands()
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for i := range now {
		now[i] -= s.before[i]
		sum += now[i]
	}
	return slices.Max(now) * float64(len(now)) / sum, nil
}

// calmSamples is how long the balancer must be quiet.
const calmSamples = 12

// Nobody tells the balancer anything but to look more often, and at less load, than it would.
func TestSkewedLoadBecomesEvenByItselfAndThenNothingMoves(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := harness.StartCluster(t, harness.ClusterOptions{
		Binary: binary, Nodes: 4, Fabric: "shm", Args: []string{"--cluster-lease", calmLease},
		Balancer: meta.Balancer{Mode: meta.BalancerAuto, Every: 500 * time.Millisecond, MinOps: 200},
	})
	load, err := startSkewed(c, seed)
	if err != nil {
		t.Fatal(err)
	}
	uneven := &stretch{c: c}
	if uneven.before, err = uneven.commands(); err != nil {
		t.Fatal(err)
	}
	// A stretch begins anew with every move, and is long enough when the balancer has looked so often.
	var calm *stretch
	var samples, ratio float64
	known := 0
	err = harness.Eventually("the load is even, and nothing moves any more", func() error {
		s, err := c.Metadata()
		if err != nil {
			return err
		}
		f, err := figures(c.Node(s.Coordinator))
		if err != nil {
			return err
		}
		moves := len(s.Migrations)
		for _, m := range s.Migrations {
			if !m.Stage.Ended() {
				calm = nil
			}
		}
		if moves != known || calm == nil {
			known, calm, samples = moves, &stretch{c: c}, f["ostro_balancer_samples_total"]
			calm.before, err = calm.commands()
			return cmp.Or(err, fmt.Errorf("there were %d moves", moves))
		}
		if ratio, err = calm.ratio(); err != nil {
			return err
		}
		if looked := f["ostro_balancer_samples_total"] - samples; moves == 0 || looked < calmSamples || ratio > 1.3 {
			return cmp.Or(c.Crashed(), fmt.Errorf("%d moves, a ratio of %.2f, and %.0f quiet samples; it thinks: %s", moves, ratio, looked, s.Decision.Why))
		}
		return nil
	})
	if failed := load.end(); err != nil || failed != nil {
		t.Fatalf("%v; clients: %v", err, failed)
	}
	t.Logf("%d moves, then a ratio of %.2f", known, ratio)
	metricsTell(t, c)
	balanceTells(t, c)
}

// metricsTell looks whether nodes count what has moved.
func metricsTell(t *testing.T, c *harness.Cluster) {
	t.Helper()
	sums := map[string]float64{}
	for _, n := range c.Nodes {
		f, err := figures(n)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range f {
			sums[name] += v
		}
	}
	for _, name := range []string{
		"ostro_migrate_records_total", "ostro_migrate_bytes_total", "ostro_migrate_pulls_total", `ostro_migrate_ended_total{as="done"}`,
		"ostro_balancer_moves_decided_total", "ostro_balancer_moves_asked_total", "ostro_balancer_moves_done_total",
		"ostro_balancer_spent_bytes", "ostro_balancer_budget_bytes", `ostro_balancer_held_total{reason="samples"}`,
	} {
		if sums[name] < 1 {
			t.Errorf("%s is %v on all nodes together, and ranges were moved", name, sums[name])
		}
	}
	for _, name := range []string{`ostro_migrate_moves{stage="pulling"}`, "ostro_migrate_waiting_keys", "ostro_balancer_moves_failed_total"} {
		if v, there := sums[name]; !there || v != 0 {
			t.Errorf("%s is %v (%v), and nothing moves", name, v, there)
		}
	}
}

// balanceTells looks whether the command says why.
func balanceTells(t *testing.T, c *harness.Cluster) {
	t.Helper()
	out, err := c.Command("cluster", "balance")
	for _, want := range []string{
		`balancer: auto`, `budget: .* of 64.* within the last hour`, `node1 .* ops/s`,
		`migration \d+, done: balancer: \d+ slots with \d+% of the operations of node1, which has [\d.]+ times the average, go to node`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("`ostro cluster balance` does not say %q: %v\n%s", want, err, out)
		}
	}
}
