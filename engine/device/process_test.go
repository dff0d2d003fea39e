package device_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// process is this test binary running as something else. It says a line when it
// is ready, and then waits to be killed.
type process struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

func start(t *testing.T, role string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	p := &process{cmd: cmd, out: bufio.NewReader(stdout)}
	t.Cleanup(func() {
		_ = stdin.Close()
		p.kill()
	})
	return p
}

// line is the next thing that the process says.
func (p *process) line(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the other process ended early: %v", err)
	}
	return line[:len(line)-1]
}

// kill is kill -9; it returns when the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// report says a line to the parent.
func report(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// untilKilled also ends when the parent does.
func untilKilled() { _, _ = io.Copy(io.Discard, os.Stdin) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// number is a line that is one.
func (p *process) number(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(p.line(t), 10, 64)
	must(t, err)
	return n
}
