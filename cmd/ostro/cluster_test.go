package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/server"
)

func TestSlotsAreShownAsRedisDoesAndPartsOfThemMarked(t *testing.T) {
	half := view.SlotsRange(7, 7)
	half.Last--
	for _, c := range []struct {
		ranges view.Ranges
		want   string
	}{
		{nil, ""},
		{view.RangesOf(view.SlotsRange(0, 4095)), "0-4095"},
		{view.RangesOf(view.SlotsRange(0, 3), view.SlotsRange(9, 9)), "0-3 9"},
		{view.RangesOf(half), "7*"},
		{view.RangesOf(view.SlotsRange(3, 6), half), "3-7*"},
	} {
		if got := strings.Join(slotsOf(c.ranges), " "); got != c.want {
			t.Errorf("%s is shown as %q, want %q", c.ranges, got, c.want)
		}
	}
}

func TestHealthIsWhatAnOperatorMustKnowFirst(t *testing.T) {
	well := server.ClusterStatus{Dealt: true, Coordinator: "a"}
	with := func(f func(*server.ClusterStatus)) server.ClusterStatus {
		st := well
		f(&st)
		return st
	}
	begun, waiting := server.RecoveryStatus{Begun: true}, server.RecoveryStatus{Stage: "waits"}
	copied := server.RecoveryStatus{Begun: true, Parts: []server.PartStatus{{Ready: true}}}
	for _, c := range []struct {
		st     server.ClusterStatus
		want   string
		served bool
	}{
		{well, "ok", true},
		{with(func(s *server.ClusterStatus) { s.Coordinator = "" }), "degraded", true},
		{with(func(s *server.ClusterStatus) { s.Logs = []server.LogStatus{{Degraded: true}} }), "degraded", true},
		{with(func(s *server.ClusterStatus) { s.Recoveries = []server.RecoveryStatus{begun} }), "recovering", false},
		{with(func(s *server.ClusterStatus) { s.Recoveries = []server.RecoveryStatus{waiting, begun} }), "waiting", false},
		{with(func(s *server.ClusterStatus) { s.Recoveries = []server.RecoveryStatus{copied} }), "degraded", true},
		{with(func(s *server.ClusterStatus) { s.Recoveries = []server.RecoveryStatus{begun, copied} }), "recovering", false},
		{with(func(s *server.ClusterStatus) { s.Dealt = false }), "forming", false},
	} {
		r := clusterReport{Health: healthOf(c.st)}
		if r.Health != c.want || r.served() != c.served {
			t.Errorf("%+v is %q, served %v; want %q, %v", c.st, r.Health, r.served(), c.want, c.served)
		}
	}
}

func TestAStatusTellsNodesRecoveriesAndProblems(t *testing.T) {
	r := reportOf("etcd://x", "", server.ClusterStatus{
		Dealt: true, Coordinator: "a", Settings: meta.Settings{Replicas: 3},
		Nodes: []server.NodeStatus{
			{ID: "a", Alive: true, Since: time.Now().Add(-3 * time.Minute), RedisAddress: "1.2.3.4:7", Share: 0.5, Ranges: view.RangesOf(view.SlotsRange(0, 8191)), Facts: &server.NodeFacts{Keys: 42}},
			{ID: "b", Share: 0.5},
			{ID: "c", Alive: true, Draining: true},
			{ID: "d", Lost: true},
			{ID: "e", Alive: true, Silence: "it does not answer"},
			{ID: "f", Alive: true},
			{ID: "g", Alive: true, Silence: "it does not know the secret", Secretive: true},
		},
		Logs: []server.LogStatus{{Node: "a", Copies: 1, Wanted: 2, Backups: []view.NodeID{"c"}, Degraded: true}},
		Recoveries: []server.RecoveryStatus{{
			Node: "b", Begun: true, Stage: "replaying", Done: 1 << 20, Total: 4 << 20, Left: 1500 * time.Millisecond,
			Parts: []server.PartStatus{{Heir: "a", Share: 0.25, Stage: "replaying"}, {Heir: "c", Share: 0.25}},
		}},
		Wishes:   []server.WishStatus{{Node: "c", Act: meta.Drain, Waiting: "b comes first"}},
		Problems: []string{"b is dead and owns 50.0% of the keys"},
	})
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{
		"etcd://x: recovering; 5 of 7 nodes alive, 3 copies wanted, coordinator a",
		"serving", "1.2.3.4:7", "0-8191", "42", "1 of 2: c", "3m", "dead", "draining", "lost", "silent", "idle", "not asked",
		"Recovery of b: replaying, 1.0 MiB of 4.0 MiB, about 1.5s left", "a takes 25.0%: replaying", "c takes 25.0%: not begun",
		"drain of c: b comes first", "! b is dead and owns 50.0% of the keys",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the status lacks %q:\n%s", want, out.String())
		}
	}
}

func devState(t *testing.T, dir string, given map[string]bool, f devFlags) (clusterState, error) {
	t.Helper()
	f.given = func(name string) bool { return given[name] }
	return f.stateIn(dir)
}

func TestAClusterInADirectoryKeepsItsNodes(t *testing.T) {
	dir := t.TempDir()
	s, err := devState(t, dir, nil, devFlags{nodes: 3, port: 7000})
	if err != nil || len(s.Nodes) != 3 || s.Nodes[2].Redis != "127.0.0.1:7002" || s.Etcd != "etcd://127.0.0.1:7099" {
		t.Fatalf("a new one is %+v, %v", s, err)
	}
	s.Nodes = slices.Delete(s.Nodes, 1, 2) // node2 was removed.
	if err := s.write(dir); err != nil {
		t.Fatal(err)
	}
	if s, err = devState(t, dir, nil, devFlags{nodes: 4, port: 7300}); err != nil || len(s.Nodes) != 2 || s.Nodes[1].ID != "node3" || s.Port != 7000 {
		t.Fatalf("without flags it is %+v, %v", s, err)
	}
	both := map[string]bool{"nodes": true, "port": true}
	if s, err = devState(t, dir, both, devFlags{nodes: 3, port: 7300}); err != nil || len(s.Nodes) != 3 || s.Nodes[2].ID != "node2" || s.Nodes[2].Redis != "127.0.0.1:7301" {
		t.Fatalf("with more nodes at other ports it is %+v, %v", s, err)
	}
	if _, err = devState(t, dir, both, devFlags{nodes: 1, port: 7000}); err == nil || !strings.Contains(err.Error(), "ostro cluster drain") {
		t.Fatalf("fewer nodes: %v", err)
	}
}

func TestAClusterThatIsReadySaysHowToConnectAndWhatToTry(t *testing.T) {
	s := clusterState{Port: 7300, Fabric: "shm", Replication: "one-sided"}
	for n := range 3 {
		node := s.node("/tmp/c", n+1)
		node.PID = 100 + n
		s.Nodes = append(s.Nodes, node)
	}
	text := welcome(s, "/tmp/c", &devFlags{dir: "/tmp/c"})
	for _, want := range []string{
		"A cluster of 3 nodes is ready: replication one-sided over shm, data in /tmp/c",
		"redis-cli -c -p 7300", "ostro://127.0.0.1:17300,127.0.0.1:17301", "http://127.0.0.1:7402/",
		"ostro cluster status --watch --dir /tmp/c", "kill -9 102 ", "kill -STOP 102 ",
		"ostro cluster add --dir /tmp/c", "ostro cluster drain node3 --dir /tmp/c", "/tmp/c/*.log", "Ctrl-C stops all",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

func TestADamagedClusterFileIsToldWithItsName(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, stateName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := readClusterState(dir)
	var usage usageError
	if err == nil || errors.As(err, &usage) || !strings.Contains(err.Error(), stateName) {
		t.Fatalf("got %v", err)
	}
}

func TestOrdersReachAClusterInADirectoryWithALongName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d := &devCluster{dir: dir, stopping: make(chan struct{}), nodes: map[string]*child{}, out: &devVoice{out: &bytes.Buffer{}}}
	d.state.Nodes = []clusterNode{{ID: "node1"}}
	if err := d.listen(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		close(d.stopping)
		d.watchers.Wait()
	}()
	if err := order(t.Context(), dir, "/forget/node1", nil); err != nil {
		t.Fatal(err)
	}
	if got := d.snapshot().Nodes; len(got) != 0 {
		t.Fatalf("a node that was to be forgotten is there: %v", got)
	}
}

func TestSettingsOfNodesAreCheckedBeforeTheyStart(t *testing.T) {
	for text, want := range map[string]string{
		"ownership-check=keys": "",
		"memory-limit=64MB":    "",
		"memory-limit":         "key=value",
		"memory=64MB":          "key=value",
		"ownership-check=both": "is not one of views, keys",
		"durability=none":      "must be everysec or always in a cluster",
		"cluster-lease=10ms":   "must be whole seconds",
	} {
		f := devFlags{nodes: 3, port: 7000, replication: "one-sided", fabric: "auto", lease: 2 * time.Second, logLevel: "info", set: []string{text}}
		err := f.check()
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || exitCode(err) != exitUsage) {
			t.Errorf("--set %s: %v, want %q", text, err, want)
		}
	}
	for args, want := range map[string]string{"--lease 1500ms": "--lease is 1.5s; it is whole seconds", "--log-level loud": "--log-level"} {
		_, err := ostro(t, append([]string{"cluster", "dev", "--dir", filepath.Join(t.TempDir(), "c")}, strings.Fields(args)...)...)
		if exitCode(err) != exitUsage || !strings.Contains(said(err), want) {
			t.Errorf("%s: exit %d, said %q, want %q", args, exitCode(err), said(err), want)
		}
	}
}

func TestANodeThatAsksForAPasswordServes(t *testing.T) {
	for answer, serves := range map[string]bool{
		"+PONG\r\n": true, "-NOAUTH Authentication required.\r\n": true, "-CLUSTERDOWN no lease\r\n": false, "": false,
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if c, err := l.Accept(); err == nil {
				_, _ = c.Read(make([]byte, len("PING\r\n")))
				_, _ = c.Write([]byte(answer))
				c.Close()
			}
		}()
		if got := answersPing(l.Addr().String()); got != serves {
			t.Errorf("%q: %v", answer, got)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
