package group_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/shm"
	"github.com/ostrodb/ostro/internal/await"
)

// These tests run real processes: this test binary in the role of a NIC or a replica.
func TestMain(m *testing.M) {
	fabrictest.Play(map[string]func([]string) error{"nic": beNIC, "replica": beReplica})
	os.Exit(await.RunToEnd(m))
}

func beNIC(args []string) error {
	e, err := nic.New(nic.Config{})
	if err != nil {
		return err
	}
	if _, err := shm.Serve(args[0], e, nil); err != nil {
		return err
	}
	return fabrictest.Serving()
}

func beReplica(args []string) error {
	path, name := args[0], args[1]
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
	return fabrictest.Serving()
}

func controlURL(nicPath, name string) string {
	return "unix://" + filepath.Join(filepath.Dir(nicPath), name+".sock")
}

// apart is a group whose NIC and replicas are processes of their own.
type apart struct {
	*scene
	nic      *fabrictest.Process
	children []*fabrictest.Process
}

func newApart(t testing.TB, s group.Spec, n int) *apart {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nic.sock")
	a := &apart{scene: &scene{t: t}, nic: fabrictest.SpawnServing(t, "nic", path)}
	var members []group.Member
	for i := range n {
		name := fmt.Sprintf("replica-%d", i)
		a.children = append(a.children, fabrictest.SpawnServing(t, "replica", path, name))
		m := must(group.Dial(a.ctx(), controlURL(path, name), group.DialOptions{Name: t.Name()}))(t)
		t.Cleanup(func() { check(t, m.Close()) })
		members = append(members, m)
	}
	a.client = device(t, func(name string) (fabric.Device, error) { return shm.Open(path, name) }, "client")
	a.g = must(group.Open(a.ctx(), a.client, s, members...))(t)
	t.Cleanup(func() { check(t, a.g.Close()) })
	return a
}

func TestStoppedReplicasExecuteForEver(t *testing.T) {
	for _, n := range []int{1, 3, 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			const slots = 16
			a := newApart(t, group.Spec{Window: 8, Slots: slots, MaxWrite: 64}, n)
			for _, p := range a.children {
				p.Stop()
			}
			const rounds = 200 // Fifty times around the slots.
			for i := range uint64(rounds) {
				a.round(i)
			}
			for i, p := range a.children {
				if s := p.State(); s != "T" {
					t.Fatalf("replica %d is in state %s", i, s)
				}
				p.Continue()
			}
			want := append(bytes.Repeat([]byte{rounds - 1}, 16), rounds, 0, 0, 0, 0, 0, 0, 0)
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
	for what, pick := range map[string]func(a *apart) *fabrictest.Process{
		"the replica in the middle, its neighbours stopped": func(a *apart) *fabrictest.Process {
			a.children[0].Stop()
			a.children[2].Stop()
			return a.children[1]
		},
		"the NIC": func(a *apart) *fabrictest.Process { return a.nic },
	} {
		t.Run(what, func(t *testing.T) {
			a := newApart(t, group.Spec{Window: 8, MaxWrite: 64}, 3)
			a.round(0)
			pick(a).Kill()
			wait(t, a.ctx(), a.g.Broken())
			if err := a.g.Err(); !errors.Is(err, group.ErrBroken) {
				t.Fatalf("the group ended with %v", err)
			}
		})
	}
}
