package harness_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/ostrodb/ostro/test/harness"
)

func TestACutStopsOneDirectionAndHealingUndoesIt(t *testing.T) {
	if !harness.Isolated(t) {
		return
	}
	for range 2 { // One after the other.
		t.Run("network", testCuts)
	}
}

func testCuts(t *testing.T) {
	n := harness.NewNetwork(t, "a", "b")
	a, b := listen(t, n, "a"), listen(t, n, "b")
	reaches := func(from, to string) bool {
		to, at := n.IP(to)+":9999", map[string]*net.UDPConn{"a": a, "b": b}[to]
		if err := n.Enter(from, func() error { return send(to) }); err != nil {
			t.Fatal(err)
		}
		return receives(t, at)
	}
	connected := func(from, to string) {
		t.Helper()
		err := harness.Eventually(from+" reaches "+to, func() error {
			if !reaches(from, to) {
				return errors.New("nothing arrives")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}, {harness.TheTest, "a"}} {
		connected(pair[0], pair[1])
	}
	if err := n.Cut("a", "b"); err != nil {
		t.Fatal(err)
	}
	if reaches("a", "b") {
		t.Fatal("a cut lets packets through")
	}
	connected("b", "a") // A cut of one direction stops no other.
	connected(harness.TheTest, "b")
	if err := n.Heal(); err != nil {
		t.Fatal(err)
	}
	connected("a", "b")
}

func listen(t *testing.T, n *harness.Network, name string) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	err := n.Enter(name, func() (err error) {
		c, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(n.IP(name)), Port: 9999})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func send(to string) error {
	c, err := net.Dial("udp4", to)
	if err != nil {
		return err
	}
	defer c.Close()
	for range 3 {
		if _, err = c.Write([]byte("hello")); err != nil {
			return err
		}
	}
	return nil
}

// receives tells whether something comes, and takes it all.
func receives(t *testing.T, c *net.UDPConn) bool {
	t.Helper()
	some := false
	for {
		if err := c.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 16)); err != nil {
			return some
		}
		some = true
	}
}
