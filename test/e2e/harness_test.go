package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ostro-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "ostro")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/ostro")
	build.Stderr = os.Stderr
	code := 1
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the binary:", err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// patience is how long anything here may take before it counts as hung.
const patience = 60 * time.Second

// outcome is what a finished process left behind.
type outcome struct {
	stdout, stderr string
	code           int
}

// run executes the binary to its end.
func run(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	return runProgram(t, stdin, binary, args...)
}

func runProgram(t *testing.T, stdin, program string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %v: %v", program, args, err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// wants fails unless the exit code and a part of what was said are right.
func (o outcome) wants(t *testing.T, code int, parts ...string) {
	t.Helper()
	for _, part := range append(parts, "") {
		if o.code != code || !strings.Contains(o.stdout+o.stderr, part) {
			t.Fatalf("exit %d, want %d and %q\nstdout: %s\nstderr: %s", o.code, code, part, o.stdout, o.stderr)
		}
	}
}

// process is a running server.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	addr  string // where Redis clients connect
	admin string
	port  string

	exited chan struct{}
	mu     sync.Mutex
	log    strings.Builder
}

// serve starts a server on a free port and waits until it serves. The data
// directory is dir.
func serve(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := launch(t, append([]string{"--port", freePort(t), "--dir", dir, "--admin-addr", "127.0.0.1:0"}, args...)...)
	if p.addr == "" {
		t.Fatalf("the server did not start:\n%s", p.logs())
	}
	return p
}

// launch starts a server and returns once it serves or has ended.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, exited: make(chan struct{})}
	p.cmd = exec.Command(binary, append([]string{"server", "--log-format", "json"}, args...)...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	serving := make(chan struct{})
	go p.follow(bufio.NewScanner(stderr), serving)
	select {
	case <-serving:
	case <-p.exited:
	case <-time.After(patience):
		t.Fatalf("neither serving nor ended:\n%s", p.logs())
	}
	return p
}

// follow keeps the log, and notices the line that says where to connect.
func (p *process) follow(lines *bufio.Scanner, serving chan<- struct{}) {
	for lines.Scan() {
		var line struct{ Msg, Addr, Admin string }
		p.mu.Lock()
		p.log.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			p.addr, p.admin = line.Addr, line.Admin
			_, p.port, _ = net.SplitHostPort(line.Addr)
			close(serving)
		}
	}
	_ = p.cmd.Wait()
	close(p.exited)
}

func (p *process) logs() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// signal sends s and waits for the end.
func (p *process) signal(s syscall.Signal) outcome {
	p.t.Helper()
	_ = p.cmd.Process.Signal(s)
	return p.wait()
}

func (p *process) wait() outcome {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.t.Fatalf("the server does not end:\n%s", p.logs())
	}
	return outcome{stderr: p.logs(), code: p.cmd.ProcessState.ExitCode()}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// client is a go-redis client of the server.
func (p *process) client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: p.addr, MaxRetries: -1})
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

// redisCLI runs the real redis-cli against the server.
func (p *process) redisCLI(stdin string, args ...string) outcome {
	p.t.Helper()
	return runProgram(p.t, stdin, "redis-cli", append([]string{"-p", p.port}, args...)...)
}

// cli runs `ostro cli` against the server.
func (p *process) cli(stdin string, args ...string) outcome {
	p.t.Helper()
	return run(p.t, stdin, append([]string{"cli", "-p", p.port}, args...)...)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// fill writes keys 0 to n-1 through a pipeline; value tells what each holds.
func fill(t *testing.T, c *redis.Client, n int, value func(i int) string) {
	t.Helper()
	for from := 0; from < n; from += 500 {
		pipe := c.Pipeline()
		for i := from; i < min(from+500, n); i++ {
			pipe.Set(t.Context(), fmt.Sprint("key:", i), value(i), 0)
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// verify reads the same keys back.
func verify(t *testing.T, c *redis.Client, n int, value func(i int) string) {
	t.Helper()
	for from := 0; from < n; from += 500 {
		pipe := c.Pipeline()
		var gets []*redis.StringCmd
		for i := from; i < min(from+500, n); i++ {
			gets = append(gets, pipe.Get(t.Context(), fmt.Sprint("key:", i)))
		}
		_, _ = pipe.Exec(t.Context())
		for i, get := range gets {
			if got, err := get.Result(); err != nil || got != value(from+i) {
				t.Fatalf("key:%d is %.40q, %v; want %.40q", from+i, got, err, value(from+i))
			}
		}
	}
}
