package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/provider"
)

// dialAll opens a group of replicas at URLs.
func dialAll(t *testing.T, dev fabric.Device, spec group.Spec, urls ...string) *group.Group {
	t.Helper()
	var members []group.Member
	for _, url := range urls {
		m, err := group.Dial(t.Context(), url, group.DialOptions{Name: t.Name()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		members = append(members, m)
	}
	g, err := group.Open(t.Context(), dev, spec, members...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

func openFabric(t *testing.T, url string) fabric.Device {
	t.Helper()
	dev, err := provider.Open(t.Context(), url, provider.Options{Name: "client"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return dev
}

func ended(t *testing.T) func(p *group.Pending, err error) group.Result {
	return func(p *group.Pending, err error) group.Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

func TestReplicasOfProcessesOfTheirOwnGoOnWhileStopped(t *testing.T) {
	nic := startNIC(t, "--realtime", "0", "--admin", "127.0.0.1:0")
	dir := t.TempDir()
	var replicas []*daemon
	var urls []string
	for i := range 3 {
		url := fmt.Sprintf("unix://%s/r%d.sock", dir, i)
		urls = append(urls, url)
		replicas = append(replicas, startDaemon(t, "replica", "--listen", url, "--fabric", "shm://"+nic.socket,
			"--memory", "1MiB", "--file", fmt.Sprintf("%s/r%d.memory", dir, i), "--admin", "127.0.0.1:0"))
	}
	g := dialAll(t, openFabric(t, "shm://"+nic.socket), group.Spec{Window: 8, MaxWrite: 64}, urls...)
	ok, ctx := ended(t), t.Context()
	for _, r := range replicas {
		fabrictest.Stop(t, r.cmd.Process)
	}
	ok(g.Write(ctx, 100, []byte("while you sleep"), group.Durable))
	if r := ok(g.CAS(ctx, 0, 0, 5, group.First(3))); r.Swapped(0) != group.First(3) {
		t.Fatalf("found %v", r.Found)
	}
	for _, r := range replicas {
		if err := r.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	if text := replicas[1].page("/metrics"); !strings.Contains(text, "ostro_replica_member 1") || !strings.Contains(text, "ostro_fabric_messages_total 2") {
		t.Errorf("the replica's metrics are\n%s", text)
	}
	if text := nic.page("/metrics"); !strings.Contains(text, "ostro_nic_devices 4") {
		t.Errorf("the NIC's metrics are\n%s", text)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	for i, r := range replicas {
		r.until("left the group")
		r.end()
		data, err := os.ReadFile(fmt.Sprintf("%s/r%d.memory", dir, i))
		if err != nil || !bytes.Equal(data[100:115], []byte("while you sleep")) {
			t.Errorf("replica %d left %q, %v", i, data[100:115], err)
		}
		if _, err := os.Stat(strings.TrimPrefix(urls[i], "unix://")); err == nil {
			t.Error("its socket is still there")
		}
	}
}

func TestReplicasAreReachedOverTCPWithASecret(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("between us\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var urls []string
	for range 2 {
		r := startDaemon(t, "replica", "--listen", "tcp://127.0.0.1:0", "--fabric", "tcp://127.0.0.1:0", "--secret-file", secret, "--memory", "1MiB")
		urls = append(urls, "tcp://"+r.field("listen")+"?secret-file="+secret)
	}
	g := dialAll(t, openFabric(t, "tcp://127.0.0.1:0?secret-file="+secret), group.Spec{}, urls...)
	ended(t)(g.Write(t.Context(), 7, []byte("far")))
	got := make([]byte, 3)
	if err := g.Read(t.Context(), 1, 7, got); err != nil || string(got) != "far" {
		t.Fatalf("read %q, %v", got, err)
	}
}

func TestAReplicaEndsWhenItsNICIsGone(t *testing.T) {
	nic := startNIC(t, "--realtime", "0")
	r := startDaemon(t, "replica", "--listen", "unix://"+filepath.Join(t.TempDir(), "r.sock"), "--fabric", "shm://"+nic.socket, "--memory", "1MiB")
	nic.end()
	r.until("start `ostro nic`, and then this replica again")
	if err := r.cmd.Wait(); err == nil {
		t.Error("it ended as if all were well")
	}
}

func TestAReplicaSaysWhatIsWrongWithItsFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "memory")
	if err := os.WriteFile(file, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, flags := range map[string][]string{
		"write it like 64MiB":            {"--memory", "lots"},
		"attach to the NIC at /nowhere":  {"--fabric", "shm:///nowhere/n.sock"},
		"give --memory 8192 to keep it":  {"--memory", "1MiB", "--file", file},
		"is no place of a replica":       {"--fabric", "inproc:", "--listen", "http://x"},
		"give one with ?secret-file":     {"--fabric", "inproc:", "--listen", "tcp://127.0.0.1:0"},
		"read the secret":                {"--secret-file", "/nowhere"},
		"open the memory's file":         {"--file", "/nowhere/at/all"},
		"listen on /nowhere/at/all.sock": {"--fabric", "inproc:", "--listen", "unix:///nowhere/at/all.sock"},
		"open the admin port":            {"--fabric", "inproc:", "--admin", "nowhere:x", "--listen", "unix://" + file + ".sock"},
	} {
		run(t, "", append([]string{"replica"}, flags...)...).wantsFailure(t, want)
	}
}

// wantsFailure fails unless the process failed and said why.
func (o outcome) wantsFailure(t *testing.T, part string) {
	t.Helper()
	if o.code == 0 || !strings.Contains(o.stdout+o.stderr, part) {
		t.Errorf("exit %d, want a failure and %q\n%s%s", o.code, part, o.stdout, o.stderr)
	}
}
