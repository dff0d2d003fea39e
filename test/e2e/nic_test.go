package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/shm"
)

// beTarget is a program that offers its memory through the NIC at a socket.
func beTarget(args []string) error {
	dev, err := shm.Open(args[0], "target")
	if err != nil {
		return err
	}
	return fabrictest.BeTarget(dev, nil)
}

// nicProcess is a running `ostro nic`.
type nicProcess struct {
	*daemon
	socket string
}

func startNIC(t *testing.T, flags ...string) *nicProcess {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "nic.sock")
	return &nicProcess{startDaemon(t, append([]string{"nic", "--socket", socket}, flags...)...), socket}
}

// useStopped connects to a target, stops its process, and uses its memory.
func useStopped(t *testing.T, here, there *nicProcess) {
	t.Helper()
	target := fabrictest.Spawn(t, "target", there.socket)
	dev, err := shm.Open(here.socket, "initiator")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	a := fabrictest.Single(t, dev)
	fabrictest.UseStopped(t, a, target, fabrictest.Meet(t, a, target))
}

func TestANICServesTheMemoryOfAStoppedProcess(t *testing.T) {
	p := startNIC(t)
	if !strings.Contains(p.said.String(), "real-time priority") {
		t.Errorf("the log does not tell the priority:\n%s", p.said.String())
	}
	useStopped(t, p, p)
	p.end()
	if _, err := os.Stat(p.socket); err == nil {
		t.Error("the socket is still there")
	}
}

func TestNICsOfTwoMachinesServeTheMemoryOfAStoppedProcess(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("between us\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--listen", "127.0.0.1:0", "--secret-file", secret, "--realtime", "0"}
	useStopped(t, startNIC(t, flags...), startNIC(t, flags...))
}

func TestANICSaysWhatIsWrongWithItsFlags(t *testing.T) {
	for want, flags := range map[string][]string{
		"--listen needs --secret-file":      {"--listen", "127.0.0.1:0"},
		"a priority from 1 to 99":           {"--realtime", "100"},
		"read the secret":                   {"--listen", "127.0.0.1:0", "--secret-file", "/nowhere"},
		"listen on /nowhere/at/all/my.sock": {"--socket", "/nowhere/at/all/my.sock"},
	} {
		out, err := exec.Command(binary, append([]string{"nic"}, flags...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, %s; want %q", flags, err, out, want)
		}
	}
}

// A thread that waits for another one of its process by yielding must not keep the core from it.
func TestANICAsksForAPriorityThatTakesTurns(t *testing.T) {
	p := startNIC(t)
	if strings.Contains(p.said.String(), "no real-time priority") {
		t.Skip("this machine gives no real-time priority")
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	if err != nil || len(tasks) == 0 {
		t.Fatal("it has no threads", err)
	}
	const policyField, roundRobin = 38, "2" // proc(5), counted from behind the name.
	for _, task := range tasks {
		stat, err := os.ReadFile(task)
		if err != nil {
			continue // It has ended.
		}
		if policy := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[policyField]; policy != roundRobin {
			t.Errorf("%s has policy %s", task, policy)
		}
	}
}
