package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/internal/port"
	"github.com/ostrodb/ostro/test/harness"
)

// calmLease is that of a cluster whose nodes are not to be taken for dead, however slow the machine is.
const calmLease = "10s"

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	fabrictest.Play(map[string]func([]string) error{"target": beTarget})
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "ostro-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if binary, err = harness.Build(dir); err != nil {
		return 1, err
	}
	return await.Run(m), nil
}

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
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
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

// process is a server, running or ended.
type process struct {
	*harness.Server
	t           *testing.T
	addr, admin string // where clients and operators connect, if it ever served
	port        string
}

// serve starts a server on dir and waits until it serves.
func serve(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := launch(t, append([]string{"--dir", dir, "--admin-addr", "127.0.0.1:0"}, args...)...)
	if p.addr == "" {
		t.Fatalf("the server did not start:\n%s", p.Log())
	}
	return p
}

// launch starts a server and returns once it serves or has ended.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Server: harness.Launch(t, binary, args...), t: t}
	select {
	case <-p.Serving():
		p.readAddresses()
	case <-p.Exited():
	case <-time.After(harness.Patience):
		t.Fatal(p.Hung("start or end"))
	}
	return p
}

// readAddresses finds the line of the log that says where to connect.
func (p *process) readAddresses() {
	for line := range strings.Lines(p.Log()) {
		var said struct{ Msg, Addr, Admin string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "serving" {
			p.addr, p.admin = said.Addr, said.Admin
			_, p.port, _ = net.SplitHostPort(said.Addr)
		}
	}
}

// stop asks the server to end, and fails unless it does so in good order.
func (p *process) stop() {
	p.t.Helper()
	if err := p.Terminate(); err != nil {
		p.t.Fatal(err)
	}
}

// ended waits for a server that ends by itself.
func (p *process) ended() outcome {
	p.t.Helper()
	select {
	case <-p.Exited():
	case <-time.After(harness.Patience):
		p.t.Fatal(p.Hung("end"))
	}
	return outcome{stderr: p.Log(), code: p.ExitCode()}
}

// client is a go-redis client of the server.
func (p *process) client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: p.addr, MaxRetries: -1, ReadTimeout: harness.Patience})
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

// ownPort is a port on which nobody listens but who is told to.
func ownPort(t *testing.T) string {
	t.Helper()
	return strconv.Itoa(port.For(t).Number)
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
