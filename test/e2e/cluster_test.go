package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/test/harness"
)

// devCluster is `ostro cluster dev` from outside.
type devCluster struct {
	t      *testing.T
	dir    string
	port   int
	cmd    *exec.Cmd
	events chan devEvent
	ready  devState
}

type devEvent struct {
	Event, Text, Node string
	PID               int
	Cluster           devState
}

type devState struct {
	Etcd, Fabric string
	PID, NicPID  int
	Nodes        []struct {
		ID, Redis, Native, Log string
		PID                    int
	}
}

// newDevCluster makes one that has a range of ports to itself, as far as one can know.
func newDevCluster(t *testing.T) *devCluster {
	t.Helper()
	dir, err := harness.ScratchDir("ostro-dev-")
	if err != nil {
		t.Fatal(err)
	}
	d := &devCluster{t: t, dir: filepath.Join(dir, "cluster")}
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			d.showLogs()
		}
		_ = os.RemoveAll(dir)
	})
	return d
}

// start runs it, and waits until it is ready. Ports that are taken are no reason to fail.
func (d *devCluster) start(args ...string) {
	d.t.Helper()
	for range 20 {
		if d.port == 0 || d.cmd == nil {
			d.port = somePort()
		}
		if d.launch(append([]string{"--port", fmt.Sprint(d.port)}, args...)...) {
			return
		}
		d.port = 0
	}
	d.t.Fatal("no range of free ports could be found")
}

// somePort is the first of a range of ports that is probably free, below those that the system takes for itself.
func somePort() int { return 10000 + rand.IntN(100)*64 }

// launch runs it; false if its ports are taken.
func (d *devCluster) launch(args ...string) bool {
	d.t.Helper()
	d.cmd = exec.Command(binary, append([]string{"cluster", "dev", "--dir", d.dir, "--json"}, args...)...)
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr strings.Builder
	d.cmd.Stderr = &stderr
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.events = make(chan devEvent, 100)
	go func() {
		defer close(d.events)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e devEvent
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				d.events <- e
			}
		}
	}()
	e, ok := d.await("ready", "")
	if !ok {
		_ = d.cmd.Wait()
		if strings.Contains(stderr.String(), "another program has") {
			return false
		}
		d.t.Fatalf("the cluster did not start: %s", stderr.String())
	}
	d.ready = e.Cluster
	return true
}

// await waits for an event; false if the process ended instead.
func (d *devCluster) await(event, node string) (devEvent, bool) {
	d.t.Helper()
	late := time.After(harness.Patience)
	for {
		select {
		case e, open := <-d.events:
			if !open {
				return e, false
			}
			if e.Event == event && (node == "" || e.Node == node) {
				return e, true
			}
		case <-late:
			d.t.Fatalf("there was no event %q within %s", event, harness.Patience)
		}
	}
}

// kill ends the parent, and so all.
func (d *devCluster) kill() {
	if d.cmd != nil && d.cmd.ProcessState == nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
	}
}

func (d *devCluster) showLogs() {
	logs, _ := filepath.Glob(filepath.Join(d.dir, "*.log"))
	for _, name := range logs {
		text, _ := os.ReadFile(name)
		d.t.Logf("%s:\n%s", name, text[max(0, len(text)-3000):])
	}
}

// pids are all processes of the cluster.
func (d *devCluster) pids() []int {
	pids := []int{d.ready.PID, d.ready.NicPID}
	for _, n := range d.ready.Nodes {
		pids = append(pids, n.PID)
	}
	return pids
}

// client is go-redis' own for clusters.
func (d *devCluster) client() *redis.ClusterClient {
	var addrs []string
	for _, n := range d.ready.Nodes {
		addrs = append(addrs, n.Redis)
	}
	// It tells on its own of every node that does not answer.
	redis.SetLogger(quiet{})
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, MaxRedirects: 20, ReadTimeout: 30 * time.Second})
	d.t.Cleanup(func() { _ = c.Close() })
	return c
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// holds waits until the cluster has what was written.
func (d *devCluster) holds(n int) {
	d.t.Helper()
	c := d.client()
	for i := range n {
		key := fmt.Sprint("key:", i)
		err := harness.Eventually(key+" is there", func() error {
			got, err := c.Get(d.t.Context(), key).Result()
			if err == nil && got != fmt.Sprint("value:", i) {
				d.t.Fatalf("%s holds %q", key, got)
			}
			if err == redis.Nil {
				d.t.Fatalf("%s, which was acknowledged, is gone", key)
			}
			return err
		})
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *devCluster) write(n int) {
	d.t.Helper()
	c := d.client()
	for i := range n {
		if err := c.Set(d.t.Context(), fmt.Sprint("key:", i), fmt.Sprint("value:", i), 0).Err(); err != nil {
			d.t.Fatal(err)
		}
	}
}

func hasEnded(pid int) bool {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(state), ") ")
	return strings.HasPrefix(rest, "Z")
}

func TestAClusterForDevelopmentKeepsEverythingWhateverEndsIt(t *testing.T) {
	d := newDevCluster(t)
	d.start("--nodes", "3")
	d.write(300)

	// A node dies: it is told, and comes back; nothing is gone.
	victim := d.ready.Nodes[1]
	if err := syscall.Kill(victim.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.await("died", victim.ID); !ok {
		t.Fatal("nobody told of a node's death")
	}
	if _, ok := d.await("started", victim.ID); !ok {
		t.Fatal("a dead node was not started again")
	}
	d.holds(300)

	// All die with the parent.
	before := d.pids()
	d.kill()
	for _, pid := range before {
		if err := harness.Eventually("no process outlives the parent", func() error {
			if !hasEnded(pid) {
				return fmt.Errorf("%d does", pid)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "", "cluster", "status", "--dir", d.dir).wants(t, 1, "does not run: start it with `ostro cluster dev")

	d.start()
	if len(d.ready.Nodes) != 3 {
		t.Fatalf("%d nodes came back, there were 3", len(d.ready.Nodes))
	}
	d.holds(300)
	run(t, "", "cluster", "dev", "--dir", d.dir).wants(t, 1, "a cluster runs in")
	run(t, "", "cluster", "dev", "--dir", d.dir+"2", "--port", fmt.Sprint(d.port)).wants(t, 1, "another program has", "choose other ports with --port")

	// It stops in good order, and goes on.
	if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.await("stopped", ""); !ok {
		t.Fatal("it did not say that it stopped")
	}
	if err := d.cmd.Wait(); err != nil {
		t.Fatalf("SIGINT: %v", err)
	}
	d.start()
	d.holds(300)
}

func TestNodesComeAndGo(t *testing.T) {
	d := newDevCluster(t)
	d.start("--nodes", "3", "--lease", calmLease)
	d.write(100)
	run(t, "", "cluster", "add", "--dir", d.dir).wants(t, 0, "node4 has joined", "node4 has its share of the keys")
	run(t, "", "cluster", "remove", "node1", "--dir", d.dir).wants(t, 1, "drain it first with `ostro cluster drain node1`")
	run(t, "", "cluster", "drain", "node9", "--dir", d.dir).wants(t, 1, "there is no node node9")
	run(t, "", "cluster", "drain", "node1", "--dir", d.dir).wants(t, 0, "node1 owns nothing any more")
	d.holds(100)
	run(t, "", "cluster", "remove", "node1", "--dir", d.dir).wants(t, 0, "node1 is forgotten")
	var report struct {
		Health string
		Nodes  []struct{ ID string }
	}
	err := harness.Eventually("the cluster is well with nodes 2 to 4", func() error {
		o := run(t, "", "cluster", "status", "--json", "--dir", d.dir)
		if err := json.Unmarshal([]byte(o.stdout), &report); err != nil {
			return fmt.Errorf("%w: %s", err, o.stdout+o.stderr)
		}
		if report.Health != "ok" || len(report.Nodes) != 3 {
			return fmt.Errorf("%+v", report)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d.ready.Nodes = d.ready.Nodes[1:]
	d.holds(100)
}

func TestAClusterWhoseNodeCannotStartSaysWhy(t *testing.T) {
	d := newDevCluster(t)
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "node2"), nil, 0o600); err != nil { // Where its directory would be.
		t.Fatal(err)
	}
	for {
		r := run(t, "", "cluster", "dev", "--dir", d.dir, "--port", fmt.Sprint(somePort()), "--respawn=false")
		if !strings.Contains(r.stderr, "another program has") {
			r.wants(t, 1, "node2 ended before the cluster was ready", "node2.log", "not a directory")
			return
		}
	}
}

func TestAClusterThatIsNotThereIsExplained(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "none")
	run(t, "", "cluster", "status", "--dir", nowhere).wants(t, 2, "there is no cluster in", "ostro cluster dev")
	run(t, "", "cluster", "status", "--cluster", "etcd://127.0.0.1:1").wants(t, 1, "does not answer")
	run(t, "", "cluster", "status", "--cluster", "x", "--dir", "y").wants(t, 2, "give --cluster or --dir, not both")
	run(t, "", "cluster", "dev", "--nodes", "0").wants(t, 2, "--nodes is 0")
	run(t, "", "cluster", "dev", "--fabric", "carrier-pigeon").wants(t, 2, "it is auto, shm or tcp")
	run(t, "", "cluster", "dev", "--replication", "hope").wants(t, 2, "it is one-sided or rpc")
	run(t, "", "cluster", "stauts").wants(t, 2, `did you mean "status"`)
}
