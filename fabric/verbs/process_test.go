//go:build verbs

package verbs_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/verbs"
)

// targetVariable makes this test binary a program that offers its memory.
const targetVariable = "OSTRO_VERBS_TARGET"

func TestMain(m *testing.M) {
	if os.Getenv(targetVariable) == "" {
		os.Exit(m.Run())
	}
	if err := beTarget(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type introduction struct {
	Endpoint fabric.Endpoint
	Region   fabric.RegionInfo
}

func open(name string) (*verbs.Device, error) {
	return verbs.Open(verbs.Config{Listen: "127.0.0.1:0", Secret: []byte("s"), Name: name})
}

func beTarget() error {
	d, err := open("target")
	if err != nil {
		return err
	}
	t := fabrictest.Alone(d)
	if err := json.NewEncoder(os.Stdout).Encode(introduction{t.QP().Endpoint(), t.Region()}); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	peer, err := fabric.ParseEndpoint(in.Text())
	if err != nil {
		return err
	}
	if err := t.QP().Connect(peer); err != nil {
		return err
	}
	in.Scan()
	return nil
}

func state(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[0]
}

// stopped connects a to another process and stops that.
func stopped(t *testing.T, a fabrictest.End) introduction {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), targetVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	var there introduction
	if err := json.NewDecoder(out).Decode(&there); err != nil {
		t.Fatal(err)
	}
	if err := a.QP().Connect(there.Endpoint); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(in, a.QP().Endpoint()); err != nil {
		t.Fatal(err)
	}
	if err := a.QP().Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); state(t, cmd.Process.Pid) != "T"; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the target does not stop")
		}
	}
	return there
}

func TestAStoppedProcessTakesWritesReadsAndAtomics(t *testing.T) {
	d, err := open("initiator")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	a := fabrictest.Single(t, d)
	there := stopped(t, a)
	copy(a.Memory().Bytes(), "while you sleep.")
	for _, w := range []fabric.WR{
		fabric.Write(there.Region.At(0), a.Piece(0, 16)), fabric.CAS(there.Region.At(16), 0, 9, a.Piece(64, 8)),
		fabric.Flush(there.Region.At(0), 24, 0), fabric.Read(there.Region.At(0), a.Piece(128, 24)),
	} {
		if c := a.Do(w); c.Status != fabric.OK {
			t.Fatalf("%v: %v", w.Op, c.Status)
		}
	}
	if got := a.Memory().Bytes()[128:152]; string(got[:16]) != "while you sleep." || got[16] != 9 {
		t.Fatalf("read back %q", got)
	}
}
