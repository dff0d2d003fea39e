package txn_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/shm"
	"github.com/ostrodb/ostro/internal/await"
)

// These tests run real processes: this test binary, told by its environment to be
// a NIC, a replica or a client. They meet in a folder.
const roleVariable = "OSTRO_TXN_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch role := os.Getenv(roleVariable); {
	case role == "":
		os.Exit(await.RunToEnd(m))
	case role == "nic":
		err = beNIC(os.Args[1])
	case role == "client":
		err = beClient(os.Args[1])
	default:
		err = beReplica(os.Args[1], role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func nicPath(folder string) string { return filepath.Join(folder, "nic.sock") }

func beNIC(folder string) error {
	_ = os.Remove(nicPath(folder))
	e, err := nic.New(nic.Config{})
	if err != nil {
		return err
	}
	if _, err := shm.Serve(nicPath(folder), e, nil); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// beReplica lends a file's memory to whoever asks at a socket. It ends with its parent.
func beReplica(folder, name string) error {
	dev, err := shm.Open(nicPath(folder), name)
	if err != nil {
		return err
	}
	mem, err := mapFile(filepath.Join(folder, name+".mem"))
	if err != nil {
		return err
	}
	socket := filepath.Join(folder, name+".sock")
	_ = os.Remove(socket)
	at, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println("ready")
	r := group.NewReplica(dev, mem)
	for {
		c, err := at.Accept()
		if err != nil {
			return err
		}
		serve(c, r)
	}
}

func mapFile(path string) (*fabric.Memory, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(memoryBytes); err != nil {
		return nil, err
	}
	return fabric.MapFile(f, 0, memoryBytes)
}

// request is what a replica's process is asked: one of the fields.
type request struct {
	Spec *group.Spec
	Join *group.Join
}

type answer struct {
	Offer group.Offer
	Error string
}

// serve answers one client. A new one takes the replica from the one before.
func serve(c net.Conn, r *group.Replica) {
	defer c.Close()
	in, out := json.NewDecoder(c), json.NewEncoder(c)
	for {
		var ask request
		if in.Decode(&ask) != nil {
			return
		}
		var a answer
		var err error
		if ask.Spec != nil {
			r.Leave()
			a.Offer, err = r.Offer(context.Background(), *ask.Spec)
		} else {
			err = r.Join(context.Background(), *ask.Join)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if out.Encode(a) != nil {
			return
		}
	}
}

// far is a replica in another process.
type far struct{ net.Conn }

func meet(folder, name string) (far, error) {
	c, err := net.Dial("unix", filepath.Join(folder, name+".sock"))
	return far{c}, err
}

func (f far) ask(r request) (a answer, err error) {
	if err := json.NewEncoder(f).Encode(r); err != nil {
		return a, err
	}
	if err := json.NewDecoder(f).Decode(&a); err != nil {
		return a, err
	}
	if a.Error != "" {
		return a, fmt.Errorf("the replica says: %s", a.Error)
	}
	return a, nil
}

func (f far) Offer(_ context.Context, s group.Spec) (group.Offer, error) {
	a, err := f.ask(request{Spec: &s})
	return a.Offer, err
}

func (f far) Join(_ context.Context, j group.Join) error {
	_, err := f.ask(request{Join: &j})
	return err
}

// meetAll opens a group of replicas of other processes.
func meetAll(ctx context.Context, dev fabric.Device, folder string, s group.Spec, names []string) (*group.Group, error) {
	var members []group.Member
	for _, name := range names {
		m, err := meet(folder, name)
		if err != nil {
			return nil, err
		}
		defer m.Close()
		members = append(members, m)
	}
	return group.Open(ctx, dev, s, members...)
}

// process is a child in some role.
type process struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// spawn starts a child; all but clients say when they are ready.
func spawn(t testing.TB, folder, role string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], folder)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	in, out := must(cmd.StdinPipe())(t), must(cmd.StdoutPipe())(t)
	check(t, cmd.Start())
	p := &process{t, cmd, in, bufio.NewScanner(out)}
	t.Cleanup(p.kill)
	if role != "client" && (!p.out.Scan() || p.out.Text() != "ready") {
		t.Fatalf("the %s said %q", role, p.out.Text())
	}
	return p
}

// shoot kills the process and waits for nothing: to wait closes the pipe, and what the process has said may still be heard.
func (p *process) shoot() { _ = p.cmd.Process.Kill() }

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// stop stops the process and returns when the system says so.
func (p *process) stop() {
	p.t.Helper()
	check(p.t, p.cmd.Process.Signal(syscall.SIGSTOP))
	for deadline := time.Now().Add(30 * time.Second); p.state() != "T"; runtime.Gosched() {
		if time.Now().After(deadline) {
			p.t.Fatalf("the process is in state %s", p.state())
		}
	}
}

func (p *process) state() string {
	p.t.Helper()
	stat := must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid)))(p.t)
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[0]
}
