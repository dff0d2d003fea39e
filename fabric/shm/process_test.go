package shm_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/shm"
	"github.com/ostrodb/ostro/internal/await"
)

// These tests run real processes: this test binary in the role of a NIC or a target.
func TestMain(m *testing.M) {
	fabrictest.Play(map[string]func([]string) error{"nic": beNIC, "target": beTarget})
	os.Exit(await.Run(m))
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

// beTarget offers its memory and echoes, by its NIC alone, each message to the
// sender.
func beTarget(args []string) error {
	dev, err := shm.Open(args[0], "target")
	if err != nil {
		return err
	}
	return fabrictest.BeTarget(dev, func(t fabrictest.End) error {
		for i := range uint64(echoes) {
			if err := t.QP().PostRecv(fabric.Recv(i, t.Piece(4096+i*64, 64))); err != nil {
				return err
			}
			if err := t.QP().Post(fabric.Wait(t.Arrived(), i+1), fabric.Send(t.Piece(4096+i*64, 64))); err != nil {
				return err
			}
		}
		return nil
	})
}

const echoes = 20

// scene is a NIC process, a target process, and an initiator in this one.
func scene(t *testing.T) (nicProcess, target *fabrictest.Process, a fabrictest.End, there fabrictest.Introduction) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nic.sock")
	nicProcess = fabrictest.SpawnServing(t, "nic", path)
	target = fabrictest.Spawn(t, "target", path)
	a = fabrictest.Single(t, open(t, path, "initiator")[0])
	return nicProcess, target, a, fabrictest.Meet(t, a, target)
}

func TestAStoppedProcessTakesWritesReadsAndAtomics(t *testing.T) {
	_, target, a, there := scene(t)
	fabrictest.UseStopped(t, a, target, there)
}

func TestChainsOfAStoppedProcessRun(t *testing.T) {
	_, target, a, _ := scene(t)
	target.Stop()
	for i := range uint64(echoes) {
		if err := a.QP().PostRecv(fabric.Recv(i, a.Piece(8192+i*64, 64))); err != nil {
			t.Fatal(err)
		}
		copy(a.Memory().Bytes(), fmt.Sprintf("message %d", i))
		if c := a.Do(fabric.Send(a.Piece(0, 64))); c.Status != fabric.OK {
			t.Fatal(c.Status)
		}
		if c := a.Received(); c.ID != i || c.Bytes != 64 || !bytes.Equal(a.Memory().Bytes()[8192+i*64:][:64], a.Memory().Bytes()[:64]) {
			t.Fatalf("echo %d: %+v", i, c)
		}
	}
	if s := target.State(); s != "T" {
		t.Fatalf("the target is in state %s", s)
	}
}

func TestAKilledProcessTakesNothing(t *testing.T) {
	_, target, a, there := scene(t)
	target.Kill()
	// The NIC learns of the death from a socket, so a write may still be in time; the
	// connection must break soon.
	for a.Do(fabric.Write(there.Region.At(0), a.Piece(0, 8))).Status == fabric.OK {
		runtime.Gosched()
	}
	if a.QP().State() != fabric.Failed {
		t.Fatalf("state %v", a.QP().State())
	}
}

func TestAProgramFindsOutThatItsNICDied(t *testing.T) {
	nicProcess, _, a, there := scene(t)
	nicProcess.Kill()
	err := a.CQ().Wait(t.Context())
	if err == nil || a.QP().Ready(t.Context()) == nil {
		t.Fatalf("waiting for a dead NIC: %v", err)
	}
	if err := a.QP().Post(fabric.Write(there.Region.At(0), a.Piece(0, 8))); err == nil {
		t.Fatal("a dead NIC took a request")
	}
}
