package fabrictest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// roleVariable tells a test binary to be something else than a test.
const roleVariable = "OSTRO_TEST_ROLE"

// Play plays the role that this process was started in by Spawn, and ends it. In
// a process without a role it returns at once, for the tests to run. A role's
// arguments are what Spawn was given.
func Play(roles map[string]func(args []string) error) {
	role := os.Getenv(roleVariable)
	if role == "" {
		return
	}
	err := fmt.Errorf("there is no role %q", role)
	if play := roles[role]; play != nil {
		err = play(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Serving is what a role says when it can be used. It returns when the test that
// started it ends.
func Serving() error {
	fmt.Println(`"serving"`)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// Process is a child of a test.
type Process struct {
	t   testing.TB
	Cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Spawn starts this test binary in a role. It ends with the test.
func Spawn(t testing.TB, role string, args ...string) *Process {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
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
	p := &Process{t, cmd, in, bufio.NewReader(out)}
	t.Cleanup(p.Kill)
	return p
}

// SpawnServing is Spawn for a role that calls Serving; it returns when it does.
func SpawnServing(t testing.TB, role string, args ...string) *Process {
	t.Helper()
	p := Spawn(t, role, args...)
	p.Hear(nil)
	return p
}

// Kill ends the process, if it has not ended.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill()
	_ = p.Cmd.Wait()
}

// Say writes a line to the process.
func (p *Process) Say(line string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		p.t.Fatal(err)
	}
}

// Hear reads a line of JSON from the process; into may be nil.
func (p *Process) Hear(into any) {
	p.t.Helper()
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.t.Fatalf("a child said nothing more: %v", err)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(line, into); err != nil {
		p.t.Fatal(err)
	}
}

// Stop stops the process and returns when the system says so.
func (p *Process) Stop() {
	p.t.Helper()
	Stop(p.t, p.Cmd.Process)
}

// Continue ends a Stop.
func (p *Process) Continue() {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
		p.t.Fatal(err)
	}
}

// State is the system's letter for what the process does; T is stopped.
func (p *Process) State() string {
	p.t.Helper()
	return state(p.t, p.Cmd.Process.Pid)
}

// Stop stops any process of the test's and returns when the system says so.
func Stop(t testing.TB, process *os.Process) {
	t.Helper()
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); state(t, process.Pid) != "T"; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("the process is in state %s", state(t, process.Pid))
		}
	}
}

func state(t testing.TB, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[0]
}
