package fabrictest

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

// Introduction is what a target tells its peer.
type Introduction struct {
	Endpoint fabric.Endpoint
	Region   fabric.RegionInfo
}

// BeTarget is a role: a process that offers memory through a device. It tells
// its introduction and connects to the endpoint of the first line it hears. On
// every line it tells the first bytes of its memory. What is prepared is posted
// before it says anything.
func BeTarget(d fabric.Device, prepare func(End) error) error {
	t := Alone(d)
	if prepare != nil {
		if err := prepare(t); err != nil {
			return err
		}
	}
	out, in := json.NewEncoder(os.Stdout), bufio.NewScanner(os.Stdin)
	if err := out.Encode(Introduction{t.QP().Endpoint(), t.Region()}); err != nil {
		return err
	}
	for first := true; in.Scan(); first = false {
		if first {
			peer, err := fabric.ParseEndpoint(in.Text())
			if err != nil {
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

// Meet connects an end with a target's process.
func Meet(t testing.TB, a End, target *Process) (there Introduction) {
	t.Helper()
	target.Hear(&there)
	if err := a.QP().Connect(there.Endpoint); err != nil {
		t.Fatal(err)
	}
	target.Say(a.QP().Endpoint().String())
	target.Hear(nil)
	if err := a.QP().Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return there
}

// UseStopped stops a target's process and uses its memory.
func UseStopped(t testing.TB, a End, target *Process, there Introduction) {
	t.Helper()
	target.Stop()
	mem := a.Memory().Bytes()
	copy(mem, "written while the target is stopped")
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
	if string(mem[128:168]) != string(mem[:40]) || mem[176] != 7 || mem[184] != 3 {
		t.Fatalf("read back %q", mem[128:192])
	}
	if s := target.State(); s != "T" {
		t.Fatalf("the target is in state %s", s)
	}
	target.Continue()
	target.Say("what do you have?")
	var got []byte
	if target.Hear(&got); string(got) != string(mem[128:192]) {
		t.Fatalf("the target has %q", got)
	}
}
