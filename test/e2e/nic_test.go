package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/shm"
)

// targetVariable makes this test binary a program that offers its memory through
// the NIC at the socket it names.
const targetVariable = "OSTRO_E2E_TARGET"

type introduction struct {
	Endpoint fabric.Endpoint
	Region   fabric.RegionInfo
}

// beTarget offers memory, connects to the endpoint it is told, and ends with its input.
func beTarget(socket string) {
	dev, err := shm.Open(socket, "target")
	if err != nil {
		panic(err)
	}
	t := fabrictest.Alone(dev)
	if err := json.NewEncoder(os.Stdout).Encode(introduction{t.QP().Endpoint(), t.Region()}); err != nil {
		panic(err)
	}
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	peer, err := fabric.ParseEndpoint(in.Text())
	if err != nil {
		panic(err)
	}
	if err := t.QP().Connect(peer); err != nil {
		panic(err)
	}
	in.Scan()
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

// target starts a program with memory at the NIC.
func (p *nicProcess) target() (*exec.Cmd, io.Writer, introduction) {
	p.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), targetVariable+"="+p.socket)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var there introduction
	if err := json.NewDecoder(out).Decode(&there); err != nil {
		p.t.Fatal(err)
	}
	return cmd, in, there
}

func processState(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[0]
}

// useStopped connects to a target, stops its process, and uses its memory.
func useStopped(t *testing.T, here, there *nicProcess) {
	t.Helper()
	target, say, memory := there.target()
	dev, err := shm.Open(here.socket, "initiator")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	a := fabrictest.Single(t, dev)
	if err := a.QP().Connect(memory.Endpoint); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(say, a.QP().Endpoint()); err != nil {
		t.Fatal(err)
	}
	if err := a.QP().Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopProcess(t, target)
	copy(a.Memory().Bytes(), "while you sleep.")
	for _, w := range []fabric.WR{
		fabric.Write(memory.Region.At(0), a.Piece(0, 16)), fabric.CAS(memory.Region.At(16), 0, 9, a.Piece(64, 8)),
		fabric.Read(memory.Region.At(0), a.Piece(128, 24)),
	} {
		if c := a.Do(w); c.Status != fabric.OK {
			t.Fatalf("%v: %v", w.Op, c.Status)
		}
	}
	if got := a.Memory().Bytes()[128:152]; string(got[:16]) != "while you sleep." || got[16] != 9 {
		t.Fatalf("read back %q", got)
	}
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
