package group_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/tcp"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/internal/port"
)

// attentive is a spec whose group soon notices what is silent.
func attentive(mode group.Mode) group.Spec {
	return group.Spec{Mode: mode, Window: 4, MaxWrite: 64, Heartbeat: 10 * time.Millisecond, Misses: 100}
}

// swallow stands between NICs and passes bytes on until it is cut: then it takes
// them and says nothing, as a machine that has vanished.
type swallow struct {
	listener net.Listener
	cut      chan struct{}
}

func newSwallow(t *testing.T, target string) *swallow {
	s := &swallow{must(net.Listen("tcp", "127.0.0.1:0"))(t), make(chan struct{})}
	t.Cleanup(func() { check(t, s.listener.Close()) })
	go func() {
		for {
			in, err := s.listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			go s.pass(in, out)
			go s.pass(out, in)
		}
	}()
	return s
}

func (s *swallow) pass(from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-s.cut:
			if err != nil {
				return // The other side is not told.
			}
			continue
		default:
		}
		if _, bad := to.Write(buf[:n]); err != nil || bad != nil {
			_, _ = from.Close(), to.Close()
			return
		}
	}
}

// patient is a replica that bears twice as much silence as its client, which so is the first to miss another.
type patient struct{ *group.Replica }

func (p patient) Offer(ctx context.Context, s group.Spec) (group.Offer, error) {
	s.Misses *= 2
	return p.Replica.Offer(ctx, s)
}

func TestAReplicaThatVanishesIsNoticedByItsHeartbeats(t *testing.T) {
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			s := &scene{t: t}
			var gone *swallow
			open := func(name string) (fabric.Device, error) {
				c := tcp.Config{Listen: port.For(t).Addr(), Secret: []byte("a secret of the tests")}
				if name == "replica-1" {
					gone = newSwallow(t, c.Listen)
					c.Advertise = gone.listener.Addr().String()
				}
				h := must(tcp.Open(c))(t)
				t.Cleanup(func() { check(t, h.Close()) })
				return h.Device(name)
			}
			s.fill(open, 3, memoryBytes)
			members := s.members()
			for i, r := range s.replicas {
				members[i] = patient{r}
			}
			s.g = must(group.Open(s.ctx(), s.client, attentive(mode), members...))(t)
			t.Cleanup(func() { check(t, s.g.Close()) })
			s.ok(s.g.Write(s.ctx(), 0, []byte("all three")))
			close(gone.cut)
			wait(t, s.ctx(), s.g.Broken())
			if err := s.g.Err(); !errors.Is(err, group.ErrBroken) || !strings.Contains(err.Error(), "replica 1 of 3 (replica-1)") {
				t.Fatalf("the group ended with %v", err)
			}
			for _, r := range s.replicas { // Also the one that hears of nothing any more.
				wait(t, s.ctx(), r.Left())
			}
		})
	}
}

func TestAReplicaLetsASilentClientGo(t *testing.T) {
	s := prepare(t, "shm", 1)
	dom := must(s.client.NewDomain("silent"))(t)
	cq := must(dom.NewCQ(64))(t)
	qp := func() fabric.QP { return must(dom.NewQP(fabric.QPConfig{SendCQ: cq, RecvCQ: cq}))(t) }
	up, down, watch := qp(), qp(), qp()
	quick := spec(1)
	quick.Heartbeat, quick.Misses = time.Millisecond, 3
	r := s.replicas[0]
	o := must(r.Offer(s.ctx(), quick))(t)
	check(t, errors.Join(up.Connect(o.Up), down.Connect(o.Down), watch.Connect(o.Watch)))
	check(t, r.Join(s.ctx(), group.Join{Offer: o.ID, Up: up.Endpoint(), Down: down.Endpoint(), Watch: watch.Endpoint()}))
	wait(t, s.ctx(), r.Left())
	if h := r.Health(); h.Member || h.Ended != 1 {
		t.Errorf("its health is %+v", h)
	}
	s.open(group.Spec{}) // The memory is offered anew.
	s.ok(s.g.Write(s.ctx(), 0, []byte("next")))
}

func TestStoppedReplicasAreMembersAsLongAsTheirNICLives(t *testing.T) {
	const misses = 200
	a := newApart(t, group.Spec{Window: 8, MaxWrite: 64, Heartbeat: 10 * time.Millisecond, Misses: misses}, 3)
	for _, p := range a.children {
		p.Stop()
	}
	before := must(a.client.Metrics())(t)
	await.True(t, "more heartbeats have passed than may be missed", func() bool {
		check(t, a.g.Err())
		return must(a.client.Metrics())(t).Operations > before.Operations+3*(misses+10)
	})
	a.round(0)
	for _, p := range a.children { // They find the heartbeats of the meantime.
		p.Continue()
	}
	a.round(1)
}

func TestAnOperationThatTakesTooLongBreaksTheGroup(t *testing.T) {
	s := prepare(t, "inproc", 3)
	s.g = s.openStuck(group.Spec{Window: 8, MaxWrite: 64, Timeout: 50 * time.Millisecond})
	p := must(s.g.Write(s.ctx(), 0, []byte("stuck")))(t)
	if _, err := p.Wait(s.ctx()); !errors.Is(err, group.ErrBroken) || !strings.Contains(err.Error(), "operation 0 has not ended within 50ms") {
		t.Fatalf("it ended with %v", err)
	}
}

func TestAGroupWithoutHeartbeatsAndTimeoutsWorks(t *testing.T) {
	s := newScene(t, "shm", group.Spec{Heartbeat: -1, Timeout: -1}, 2)
	s.ok(s.g.Write(s.ctx(), 0, []byte("quiet")))
	s.want(0, []byte("quiet"))
}

// ownNetwork tells the test below that it runs in a network of its own, which
// can be taken away without a word to those who use it.
const ownNetwork = "OSTRO_GROUP_TEST_OWN_NETWORK"

func TestANetworkThatVanishesIsNoticedByBothSides(t *testing.T) {
	if os.Getenv(ownNetwork) != "" {
		vanish(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), ownNetwork+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM) || strings.Contains(string(out), "--- SKIP"):
		t.Skipf("this machine gives no network namespaces: %v %s", err, out)
	case err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Fatalf("%v\n%s", err, out)
	}
}

func vanish(t *testing.T) {
	if err := loopback(true); err != nil {
		t.Skip("the loopback cannot be switched:", err)
	}
	s := newScene(t, "tcp", attentive(group.Chain), 2)
	s.ok(s.g.Write(s.ctx(), 0, []byte("both")))
	check(t, loopback(false))
	wait(t, s.ctx(), s.g.Broken())
	if err := s.g.Err(); !errors.Is(err, group.ErrBroken) || !strings.Contains(err.Error(), "no sign of life") {
		t.Fatalf("the group ended with %v", err)
	}
	for _, r := range s.replicas {
		wait(t, s.ctx(), r.Left())
		if h := r.Health(); h.Ended != 1 {
			t.Fatalf("the replica's health is %+v", h)
		}
	}
}

func loopback(up bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr); err != nil {
		return err
	}
	flags := ifr.Uint16() &^ unix.IFF_UP
	if up {
		flags |= unix.IFF_UP
	}
	ifr.SetUint16(flags)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

func TestAReplicaWhoseProgramWasHeldUpDoesNotTrustItsGroupUntilItHearsOfIt(t *testing.T) {
	s := prepare(t, "inproc", 1)
	rare := spec(1)
	rare.Heartbeat, rare.Misses = time.Hour, 3
	s.open(rare)
	r := s.replicas[0]
	if number, alive := r.Membership(); number != s.g.Membership(0) || !alive {
		t.Fatalf("it is member %d, and the client knows it as %d; alive: %v", number, s.g.Membership(0), alive)
	}
	r.HeldUp(6 * time.Hour)
	if number, alive := r.Membership(); number != s.g.Membership(0) || alive {
		t.Fatalf("after six hours it is member %d, alive: %v", number, alive)
	}
	check(t, s.g.Close())
	wait(t, s.ctx(), r.Left())
	if number, _ := r.Membership(); number != 0 {
		t.Fatalf("without a group it is member %d", number)
	}
	often := spec(1)
	often.Heartbeat, often.Misses = 5*time.Millisecond, 10000
	s.open(often)
	r.HeldUp(time.Hour)
	await.True(t, "it is a member", func() bool { _, alive := r.Membership(); return alive })
}
