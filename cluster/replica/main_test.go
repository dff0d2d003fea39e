package replica

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/provider"
	"github.com/ostrodb/ostro/fabric/shm"
)

// Some tests run real processes: this test binary in the role of a NIC or a backup. The
// backup's own tests have others, so only these are played here.
func init() {
	roles := map[string]func([]string) error{"primary's NIC": beNIC, "primary's backup": beBackup}
	if roles[os.Getenv("OSTRO_TEST_ROLE")] != nil {
		fabrictest.Play(roles)
	}
}

func beNIC(args []string) error {
	e, err := nic.New(nic.Config{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	if _, err := shm.Serve(args[0], e, nil); err != nil {
		return err
	}
	return fabrictest.Serving()
}

// beBackup is a backup with a name, a directory, a fabric and a size of segments; it says where it
// listens.
func beBackup(args []string) error {
	id := view.NodeID(args[0])
	device, err := openFabric(args[2], args[0])
	if err != nil {
		return err
	}
	var bytes uint32
	if _, err := fmt.Sscan(args[3], &bytes); err != nil {
		return err
	}
	b, err := OpenBackup(BackupOptions{Dir: args[1], Device: device, Node: id, SegmentBytes: bytes, FlushRate: 1 << 40, ScrubRate: -1})
	if err != nil {
		return err
	}
	s, err := peer.NewServer(peer.ServerOptions{Node: id, Secret: testSecret})
	if err != nil {
		return err
	}
	b.Handle(s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("%q\n", l.Addr())
	go serve(l, s)
	return fabrictest.Serving()
}

func openFabric(url, name string) (fabric.Device, error) {
	if url == "" {
		return nil, nil
	}
	return provider.Open(context.Background(), url, provider.Options{Name: name, Secret: testSecret})
}

// processCluster has its backups, and the NIC of shm, in processes of their own.
func processCluster(t testing.TB, url string, backups, copies, segmentBytes int) (*cluster, []*fabrictest.Process) {
	t.Helper()
	var processes []*fabrictest.Process
	if url == "shm" {
		path := filepath.Join(t.TempDir(), "nic.sock")
		processes = append(processes, fabrictest.SpawnServing(t, "primary's NIC", path))
		url = "shm://" + path
	}
	c := newClusterOn(t, func(name string) (fabric.Device, error) { return openFabric(url, name) }, 0, copies, segmentBytes)
	for i := range backups {
		id := view.NodeID(fmt.Sprintf("n%d", i+1))
		p := fabrictest.Spawn(t, "primary's backup", string(id), filepath.Join(t.TempDir(), string(id)), url, fmt.Sprint(segmentBytes))
		n := &node{member: Member{ID: id}}
		p.Hear(&n.addr)
		p.Hear(nil)
		c.nodes[id], n.process = n, p
		processes = append(processes, p)
		c.members.join(n.member)
	}
	return c, processes
}
