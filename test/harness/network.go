package harness

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Network is machines on one switch: a namespace each, and a bridge that the test
// itself is connected to, too. It lives within an Isolated test.
type Network struct {
	machines map[string]*Machine
}

// Machine is one of them.
type Machine struct {
	Name string
	IP   string
	*space
}

// TheTest is the name of the machine that the test runs on.
const TheTest = "client"

// NewNetwork connects machines with these names.
func NewNetwork(t testing.TB, names ...string) *Network {
	t.Helper()
	n := &Network{machines: map[string]*Machine{TheTest: {Name: TheTest, IP: "10.77.0.1"}}}
	var here *space
	for _, step := range [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", "switch", "type", "bridge"},
		{"addr", "add", "10.77.0.1/24", "dev", "switch"},
		{"link", "set", "switch", "up"},
	} {
		must(t, here.command("ip", step...))
	}
	t.Cleanup(func() { _ = here.command("ip", "link", "del", "switch") }) // For the next one.
	must(t, n.filter(n.machines[TheTest]))
	for i, name := range names {
		must(t, n.add(t, name, i+2))
	}
	return n
}

// add connects a machine.
func (n *Network) add(t testing.TB, name string, number int) error {
	s, err := newSpace()
	if err != nil {
		return err
	}
	t.Cleanup(s.close)
	m := &Machine{name, fmt.Sprintf("10.77.0.%d", number), s}
	n.machines[name] = m
	port := fmt.Sprintf("port%d", number)
	var here *space
	for _, step := range []struct {
		where *space
		what  string
	}{
		{here, "link add " + port + " type veth peer name eth0 netns " + s.path()},
		{here, "link set " + port + " master switch up"},
		{s, "addr add " + m.IP + "/24 dev eth0"},
		{s, "link set eth0 up"},
	} {
		if err := step.where.command("ip", strings.Fields(step.what)...); err != nil {
			return err
		}
	}
	t.Cleanup(func() { _ = here.command("ip", "link", "del", port) })
	return n.filter(m)
}

// filter prepares a machine for cuts.
func (n *Network) filter(m *Machine) error {
	return m.nft("table inet cuts { chain in { type filter hook input priority 0; }; }")
}

func (m *Machine) nft(rules string) error { return m.command("nft", rules) }

// IP is a machine's address.
func (n *Network) IP(name string) string { return n.machines[name].IP }

// Enter runs f on a machine. What f opens stays there.
func (n *Network) Enter(name string, f func() error) error { return n.machines[name].enter(f) }

// Cut makes every packet vanish that goes from one machine to another. The other
// direction stays as it is.
func (n *Network) Cut(from, to string) error {
	return n.machines[to].nft("add rule inet cuts in ip saddr " + n.IP(from) + " drop")
}

// CutBoth cuts two machines off from each other.
func (n *Network) CutBoth(a, b string) error {
	if err := n.Cut(a, b); err != nil {
		return err
	}
	return n.Cut(b, a)
}

// Heal undoes all cuts.
func (n *Network) Heal() error {
	for _, m := range n.machines {
		if err := m.nft("flush chain inet cuts in"); err != nil {
			return err
		}
	}
	return nil
}

// SmallDisk mounts a file system of so many bytes on a directory of an Isolated test.
func SmallDisk(t testing.TB, dir string, bytes int64) {
	t.Helper()
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", bytes)))
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
