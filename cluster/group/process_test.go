package group_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/shm"
)

// These tests run real processes: this test binary, told by its environment to
// be a NIC or a replica.
const roleVariable = "OSTRO_GROUP_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleVariable) {
	case "nic":
		err = beNIC(os.Args[1])
	case "":
		goleak.VerifyTestMain(m)
	default:
		err = beReplica(os.Args[1], os.Getenv(roleVariable))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func beNIC(path string) error {
	e, err := nic.New(nic.Config{})
	if err != nil {
		return err
	}
	if _, err := shm.Serve(path, e, nil); err != nil {
		return err
	}
	fmt.Println(`"serving"`)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func beReplica(path, name string) error {
	dev, err := shm.Open(path, name)
	if err != nil {
		return err
	}
	mem, err := fabric.NewMemory(memoryBytes)
	if err != nil {
		return err
	}
	if _, err := group.Serve(controlURL(path, name), group.NewReplica(dev, mem), group.ServeOptions{}); err != nil {
		return err
	}
	fmt.Println(`"serving"`)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func controlURL(nicPath, name string) string {
	return "unix://" + filepath.Join(filepath.Dir(nicPath), name+".sock")
}

// process is a child in some role.
type process struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
}

// spawn returns when the child serves.
func spawn(t testing.TB, role, path string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], path)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	in, out := must(cmd.StdinPipe())(t), must(cmd.StdoutPipe())(t)
	check(t, cmd.Start())
	p := &process{t, cmd, in}
	t.Cleanup(p.kill)
	var word string
	check(t, json.NewDecoder(out).Decode(&word))
	return p
}

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

// apart is a group whose NIC and replicas are processes of their own.
type apart struct {
	*scene
	nic      *process
	children []*process
}

func newApart(t testing.TB, s group.Spec, n int) *apart {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nic.sock")
	a := &apart{scene: &scene{t: t}, nic: spawn(t, "nic", path)}
	var members []group.Member
	for i := range n {
		name := fmt.Sprintf("replica-%d", i)
		a.children = append(a.children, spawn(t, name, path))
		m := must(group.Dial(a.ctx(), controlURL(path, name), group.DialOptions{Name: t.Name()}))(t)
		t.Cleanup(func() { check(t, m.Close()) })
		members = append(members, m)
	}
	a.client = device(t, func(name string) (fabric.Device, error) { return shm.Open(path, name) }, "client")
	a.g = must(group.Open(a.ctx(), a.client, s, members...))(t)
	t.Cleanup(func() { check(t, a.g.Close()) })
	return a
}

func TestStoppedReplicasExecuteAsLongAsRequestsLast(t *testing.T) {
	for _, n := range []int{1, 3, 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			const slots = 64
			a := newApart(t, group.Spec{Window: 8, Slots: slots, MaxWrite: 64, Patience: time.Minute}, n)
			for _, p := range a.children {
				p.stop()
			}
			for i := range uint64(slots / 4) {
				a.round(i)
			}
			for i, p := range a.children {
				if s := p.state(); s != "T" {
					t.Fatalf("replica %d is in state %s", i, s)
				}
			}
			late := must(a.g.Write(a.ctx(), 24, []byte("waits for requests")))(t)
			for _, p := range a.children {
				check(t, p.cmd.Process.Signal(syscall.SIGCONT))
			}
			a.ok(late, nil)
			want := append(bytes.Repeat([]byte{slots/4 - 1}, 16), slots/4, 0, 0, 0, 0, 0, 0, 0)
			want = append(want, "waits for requests"...)
			for i := range a.children {
				got := make([]byte, len(want))
				if check(t, a.g.Read(a.ctx(), i, 0, got)); !bytes.Equal(got, want) {
					t.Fatalf("replica %d has %q, want %q", i, got, want)
				}
			}
		})
	}
}

// round is one of each primitive.
func (a *apart) round(i uint64) {
	a.t.Helper()
	ctx, all := a.ctx(), group.First(a.g.Replicas())
	a.ok(a.g.Write(ctx, 0, bytes.Repeat([]byte{byte(i)}, 8)))
	a.ok(a.g.Copy(ctx, 8, 0, 8))
	a.ok(a.g.Flush(ctx, 0, 16))
	if r := a.ok(a.g.CAS(ctx, 16, i, i+1, all, group.Durable)); r.Swapped(i) != all {
		a.t.Fatalf("gCAS %d found %v", i, r.Found)
	}
}

func TestAKilledProcessBreaksTheGroup(t *testing.T) {
	for what, pick := range map[string]func(a *apart) *process{
		"the replica in the middle, its neighbours stopped": func(a *apart) *process {
			a.children[0].stop()
			a.children[2].stop()
			return a.children[1]
		},
		"the NIC": func(a *apart) *process { return a.nic },
	} {
		t.Run(what, func(t *testing.T) {
			a := newApart(t, group.Spec{Window: 8, MaxWrite: 64}, 3)
			a.round(0)
			pick(a).kill()
			wait(t, a.ctx(), a.g.Broken())
			if err := a.g.Err(); !errors.Is(err, group.ErrBroken) {
				t.Fatalf("the group ended with %v", err)
			}
		})
	}
}
