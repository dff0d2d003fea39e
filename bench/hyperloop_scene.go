package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/shm"
)

// hyperScene is all processes of the experiment: NICs, replicas, the client, which
// is this one, and the busy ones.
type hyperScene struct {
	f        hyperFlags
	dir      string
	nics     []*child // one for all, or the client's and one for each replica
	replicas []*hyperReplica
	client   fabric.Device
	busy     *busy

	clientRealTime, nicsRealTime bool
}

// longestRun is what a NIC may run without waiting, beyond a round.
const longestRun = 5 * time.Second

// memoryBytes is what each replica lends.
const memoryBytes = 2 * hyperPlaces * maxHyperBytes

func newHyperScene(ctx context.Context, f hyperFlags) (*hyperScene, error) {
	s := &hyperScene{f: f}
	err := s.start(ctx)
	if err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

func (s *hyperScene) start(ctx context.Context) (err error) {
	if s.dir, err = makeDir(""); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	if err := boundRealTime(longestRun + 2*s.f.duration); err != nil {
		return err
	}
	if slices.Contains(s.f.loads, contended) {
		if s.busy, err = startBusy(s.f.busy); err != nil {
			return err
		}
	}
	if err := s.startNIC(ctx); err != nil {
		return err
	}
	for i := range slices.Max(s.f.replicas) {
		if s.f.fabric == "tcp" {
			if err := s.startNIC(ctx); err != nil {
				return err
			}
		}
		if err := s.startReplica(ctx, i); err != nil {
			return err
		}
	}
	if s.client, err = shm.Open(s.socket(0), "client"); err != nil {
		return err
	}
	s.nicsRealTime = true
	for _, c := range s.nics {
		s.nicsRealTime = s.nicsRealTime && isRealTime(c.cmd.Process.Pid)
	}
	if s.f.priority > 0 { // Last: what is started later would have it, too.
		s.clientRealTime = realTime(uint32(s.f.priority-1)) == nil
	}
	return nil
}

func (s *hyperScene) socket(nic int) string {
	return filepath.Join(s.dir, fmt.Sprintf("nic-%d.sock", nic))
}

// startNIC returns when programs can attach to the NIC.
func (s *hyperScene) startNIC(ctx context.Context) error {
	socket := s.socket(len(s.nics))
	args := []string{"nic", "--socket", socket, "--realtime", strconv.Itoa(s.f.priority), "--log-level", "warn"}
	if s.f.fabric == "tcp" {
		secret := filepath.Join(s.dir, "secret")
		if err := os.WriteFile(secret, []byte("of this benchmark"), 0o600); err != nil {
			return fmt.Errorf("write the NICs' secret: %w", err)
		}
		args = append(args, "--listen", "127.0.0.1:0", "--secret-file", secret)
	}
	c, err := startChild(fmt.Sprintf("NIC %d", len(s.nics)), args...)
	if err != nil {
		return err
	}
	s.nics = append(s.nics, c)
	return c.await(ctx, func() error {
		d, err := shm.Open(socket, "probe")
		if err != nil {
			return err
		}
		return d.Close()
	})
}

// end ends every process; what is left of them goes with the directory.
func (s *hyperScene) end() {
	if s.busy != nil {
		s.busy.end()
	}
	if s.client != nil {
		_ = s.client.Close()
	}
	for _, r := range s.replicas {
		if r.Remote != nil {
			_ = r.Close()
		}
		r.kill()
	}
	for _, c := range s.nics {
		c.kill()
	}
	_ = os.RemoveAll(s.dir)
}

// used is processor time, of whom it matters.
type used struct{ replicas, nics time.Duration }

func (s *hyperScene) used(replicas int) (u used, err error) {
	for _, r := range s.replicas[:replicas] {
		d, err := r.cpu()
		if err != nil {
			return u, err
		}
		u.replicas += d
	}
	for _, c := range s.nics {
		d, err := c.cpu()
		if err != nil {
			return u, err
		}
		u.nics += d
	}
	return u, nil
}

// spec is the group that a case wants.
func (c hyperCase) spec(f hyperFlags, mode string) group.Spec {
	const header = 256 // More than a transaction's record has beside its data.
	return group.Spec{
		Mode: group.Mode(mode), Window: f.window, Slots: f.slots, MaxWrite: c.Bytes + header, Patience: time.Minute,
	}
}

// open makes a group of the first replicas for one round.
func (s *hyperScene) open(ctx context.Context, spec group.Spec, replicas int) (*group.Group, error) {
	var members []group.Member
	for _, r := range s.replicas[:replicas] {
		if err := r.Leave(ctx); err != nil {
			return nil, err
		}
		members = append(members, r.Remote)
	}
	return group.Open(ctx, s.client, spec, members...)
}

// hyperReplica is a replica's process, and the way to ask it.
type hyperReplica struct {
	*child
	*group.Remote
}

// startReplica returns when the replica can be asked.
func (s *hyperScene) startReplica(ctx context.Context, i int) error {
	listen := "unix://" + filepath.Join(s.dir, fmt.Sprintf("replica-%d.sock", i))
	c, err := startChild(fmt.Sprintf("replica %d", i), "replica", "--listen", listen, "--fabric", "shm://"+s.socket(len(s.nics)-1),
		"--memory", strconv.Itoa(memoryBytes), "--name", fmt.Sprintf("replica-%d", i), "--log-level", "warn")
	if err != nil {
		return err
	}
	s.replicas = append(s.replicas, &hyperReplica{child: c})
	return c.await(ctx, func() (err error) {
		s.replicas[i].Remote, err = group.Dial(ctx, listen, group.DialOptions{Name: "bench"})
		return err
	})
}
