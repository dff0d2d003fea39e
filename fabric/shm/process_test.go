package shm_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/shm"
)

// These tests run real processes: this test binary, told by its environment to
// be a NIC or a target.
const roleVariable = "OSTRO_SHM_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleVariable) {
	case "nic":
		err = beNIC(os.Args[1])
	case "target":
		err = beTarget(os.Args[1])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func beNIC(path string) error {
	e, err := nic.New(nic.Config{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	if _, err := shm.Serve(path, e, nil); err != nil {
		return err
	}
	fmt.Println("serving")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// introduction is what a target tells its peer.
type introduction struct {
	Endpoint fabric.Endpoint
	Region   fabric.RegionInfo
}

// beTarget offers its memory and echoes, by its NIC alone, each message to the
// sender: RECV, WAIT and SEND are posted before it says anything. On every line
// it hears it tells the first bytes of its memory.
func beTarget(path string) error {
	dev, err := shm.Open(path, "target")
	if err != nil {
		return err
	}
	t := fabrictest.Alone(dev)
	for i := range uint64(echoes) {
		if err := t.QP().PostRecv(fabric.Recv(i, t.Piece(4096+i*64, 64))); err != nil {
			return err
		}
		if err := t.QP().Post(fabric.Wait(t.Arrived(), i+1), fabric.Send(t.Piece(4096+i*64, 64))); err != nil {
			return err
		}
	}
	out, in := json.NewEncoder(os.Stdout), bufio.NewScanner(os.Stdin)
	if err := out.Encode(introduction{t.QP().Endpoint(), t.Region()}); err != nil {
		return err
	}
	for first := true; in.Scan(); first = false {
		if first {
			var peer fabric.Endpoint
			if err := peer.UnmarshalText(in.Bytes()); err != nil {
				return err
			}
			if err := t.QP().Connect(peer); err != nil {
				return err
			}
		}
		if err := out.Encode(t.Memory().Bytes()[:64]); err != nil {
			return err
		}
	}
	return nil
}

const echoes = 20

// process is a child in some role.
type process struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func spawn(t testing.TB, role, path string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], path)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t, cmd, in, bufio.NewReader(out)}
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *process) say(line string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) hear(into any) {
	p.t.Helper()
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.t.Fatalf("a child said nothing more: %v", err)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(line, into); err != nil {
		p.t.Fatal(err)
	}
}

// stop stops the process and returns when the system says so.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		p.t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); p.state() != "T"; runtime.Gosched() {
		if time.Now().After(deadline) {
			p.t.Fatalf("the process is in state %s", p.state())
		}
	}
}

func (p *process) state() string {
	p.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[0]
}

// scene is a NIC process, a target process, and an initiator in this one.
func scene(t *testing.T) (nicProcess, target *process, a fabrictest.End, there introduction) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nic.sock")
	nicProcess = spawn(t, "nic", path)
	if line, err := nicProcess.out.ReadString('\n'); err != nil || line != "serving\n" {
		t.Fatalf("the NIC says %q, %v", line, err)
	}
	target = spawn(t, "target", path)
	target.hear(&there)
	a = fabrictest.Single(t, open(t, path, "initiator")[0])
	if err := a.QP().Connect(there.Endpoint); err != nil {
		t.Fatal(err)
	}
	target.say(a.QP().Endpoint().String())
	target.hear(nil)
	if err := a.QP().Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return nicProcess, target, a, there
}

func TestAStoppedProcessTakesWritesReadsAndAtomics(t *testing.T) {
	_, target, a, there := scene(t)
	target.stop()
	src := a.Memory().Bytes()
	copy(src, "written while the target is stopped")
	for _, w := range []fabric.WR{
		fabric.Write(there.Region.At(0), a.Piece(0, 40)),
		fabric.CAS(there.Region.At(48), 0, 7, a.Piece(256, 8)),
		fabric.Add(there.Region.At(56), 3, a.Piece(264, 8)),
		fabric.Flush(there.Region.At(0), 64, 0),
		fabric.Read(there.Region.At(0), a.Piece(128, 64)),
	} {
		if c := a.Do(w); c.Status != fabric.OK {
			t.Fatalf("%v: %v", w.Op, c.Status)
		}
	}
	if !bytes.Equal(src[128:168], src[:40]) || src[176] != 7 || src[184] != 3 {
		t.Fatalf("read back %q", src[128:192])
	}
	if s := target.state(); s != "T" {
		t.Fatalf("the target is in state %s", s)
	}
	if err := target.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	target.say("what do you have?")
	var got []byte
	if target.hear(&got); !bytes.Equal(got, src[128:192]) {
		t.Fatalf("the target has %q", got)
	}
}

func TestChainsOfAStoppedProcessRun(t *testing.T) {
	_, target, a, _ := scene(t)
	target.stop()
	for i := range uint64(echoes) {
		if err := a.QP().PostRecv(fabric.Recv(i, a.Piece(8192+i*64, 64))); err != nil {
			t.Fatal(err)
		}
		copy(a.Memory().Bytes(), fmt.Sprintf("message %d", i))
		if c := a.Do(fabric.Send(a.Piece(0, 64))); c.Status != fabric.OK {
			t.Fatal(c.Status)
		}
		if c := a.Received(); c.ID != i || c.Bytes != 64 || !bytes.Equal(a.Memory().Bytes()[8192+i*64:][:64], a.Memory().Bytes()[:64]) {
			t.Fatalf("echo %d: %+v", i, c)
		}
	}
	if s := target.state(); s != "T" {
		t.Fatalf("the target is in state %s", s)
	}
}

func TestAKilledProcessTakesNothing(t *testing.T) {
	_, target, a, there := scene(t)
	target.kill()
	// The NIC learns of the death from a socket, so a write may still be in time; the
	// connection must break soon.
	for a.Do(fabric.Write(there.Region.At(0), a.Piece(0, 8))).Status == fabric.OK {
		runtime.Gosched()
	}
	if a.QP().State() != fabric.Failed {
		t.Fatalf("state %v", a.QP().State())
	}
}

func TestAProgramFindsOutThatItsNICDied(t *testing.T) {
	nicProcess, _, a, there := scene(t)
	nicProcess.kill()
	err := a.CQ().Wait(t.Context())
	if err == nil || a.QP().Ready(t.Context()) == nil {
		t.Fatalf("waiting for a dead NIC: %v", err)
	}
	if err := a.QP().Post(fabric.Write(there.Region.At(0), a.Piece(0, 8))); err == nil {
		t.Fatal("a dead NIC took a request")
	}
}
