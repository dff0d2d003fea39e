package inproc_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
)

func TestACutLeavesExactlyThePrefix(t *testing.T) {
	n := network(t)
	const size = 300
	for cut := range uint64(size + 1) {
		a, b := fabrictest.Pair(t, devices(t, n, "a", "b"))
		src := a.Memory().Bytes()
		for i := range src[:size] {
			src[i] = byte(i%255 + 1)
		}
		if err := n.CutAfter(a.QP(), cut); err != nil {
			t.Fatal(err)
		}
		c := a.Do(fabric.Write(b.At(5), a.Piece(0, 100), a.Piece(100, size-100)))
		if c.Status != fabric.PeerLost {
			t.Fatalf("cut at %d: %v", cut, c.Status)
		}
		got := b.Memory().Bytes()[5:]
		if !bytes.Equal(got[:cut], src[:cut]) || len(bytes.Trim(got[cut:], "\x00")) != 0 {
			t.Fatalf("cut at %d: the target has other bytes", cut)
		}
		if b.QP().State() != fabric.Failed {
			t.Fatalf("cut at %d: the target is %v", cut, b.QP().State())
		}
	}
}

func TestACutCountsOverRequests(t *testing.T) {
	n := network(t)
	a, b := fabrictest.Pair(t, devices(t, n, "a", "b"))
	if err := n.CutAfter(a.QP(), 20); err != nil {
		t.Fatal(err)
	}
	a.Memory().Bytes()[0] = 1
	for range 2 {
		if c := a.Do(fabric.Write(b.At(0), a.Piece(0, 8))); c.Status != fabric.OK {
			t.Fatal(c.Status)
		}
	}
	if c := a.Do(fabric.Add(b.At(64), 1)); c.Status != fabric.PeerLost || b.Memory().Bytes()[64] != 0 {
		t.Fatalf("%v, and the word is %d: half an atomic", c.Status, b.Memory().Bytes()[64])
	}
}

func TestAHeldQueueGoesOnWhenReleased(t *testing.T) {
	n := network(t)
	a, b := fabrictest.Pair(t, devices(t, n, "a", "b"))
	if err := n.Hold(a.QP()); err != nil {
		t.Fatal(err)
	}
	a.Memory().Bytes()[0] = 1
	if err := a.QP().Post(fabric.Write(b.At(0), a.Piece(0, 1)).Signal(1)); err != nil {
		t.Fatal(err)
	}
	if c := b.Do(fabric.Nop()); c.Status != fabric.OK || b.Memory().Bytes()[0] != 0 {
		t.Fatal("a held request was executed")
	}
	if err := n.Release(a.QP()); err != nil {
		t.Fatal(err)
	}
	if c := a.Next(); c.Status != fabric.OK || b.Memory().Bytes()[0] != 1 {
		t.Fatalf("after the release: %v", c.Status)
	}
}

func TestADelayHoldsBackEachRequest(t *testing.T) {
	n := network(t)
	a, b := fabrictest.Pair(t, devices(t, n, "a", "b"))
	const delay = 3 * time.Millisecond
	if err := n.Delay(a.QP(), delay); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 3 {
		if c := a.Do(fabric.Write(b.At(0), a.Piece(0, 1))); c.Status != fabric.OK {
			t.Fatal(c.Status)
		}
	}
	if took := time.Since(began); took < 3*delay {
		t.Fatalf("three delayed requests took %v", took)
	}
}

func TestAKilledDeviceIsOutOfReach(t *testing.T) {
	n := network(t)
	devs := devices(t, n, "a", "b")
	a, b := fabrictest.Pair(t, devs)
	if err := n.Kill(devs[1]); err != nil {
		t.Fatal(err)
	}
	if c := a.Do(fabric.Write(b.At(0), a.Piece(0, 1))); c.Status == fabric.OK {
		t.Fatal("a dead device took a write")
	}
}

func TestDevicesOfAClosedNetworkFindTheirNICGone(t *testing.T) {
	n := network(t)
	a, _ := fabrictest.Pair(t, devices(t, n, "a", "b"))
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.QP().Ready(t.Context()); err == nil {
		t.Fatal("a queue pair without a NIC is ready")
	}
}
