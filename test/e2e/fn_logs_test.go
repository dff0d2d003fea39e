package e2e

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/tenant/library/librarytest"
	"github.com/ostrodb/ostro/test/harness"
)

// logLine is a line of `ostro fn logs --json`.
type logLine struct {
	Node, Function, Text string
	At                   time.Time
}

// follow runs `ostro fn logs -f` and hands out its lines until it ends.
func follow(t *testing.T, args ...string) (cmd *exec.Cmd, lines chan logLine) {
	t.Helper()
	cmd = exec.Command(binary, append([]string{"fn", "logs", "-f", "--json", "--every", "50ms"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // It has ended by then, if all is well.
	lines = make(chan logLine, 1000)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			var l logLine
			if err := json.Unmarshal(in.Bytes(), &l); err != nil {
				t.Errorf("%s: %v", in.Text(), err)
			}
			lines <- l
		}
	}()
	return cmd, lines
}

func TestTheLogOfAFunctionIsFollowedOverAllNodes(t *testing.T) {
	d := newDevCluster(t)
	d.start("--nodes", "3", "--lease", calmLease)
	path := filepath.Join(t.TempDir(), "speaker.wasm")
	if err := os.WriteFile(path, librarytest.Logging("a line", "speak"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(d.ready.Nodes[0].Redis)
	if err != nil {
		t.Fatal(err)
	}
	run(t, "", "fn", "install", path, "-p", port).wants(t, 0, "module speaker of default is installed")
	speak := func(node int) {
		t.Helper()
		c := redis.NewClient(&redis.Options{Addr: d.ready.Nodes[node].Redis, MaxRetries: -1, ReadTimeout: harness.Patience})
		defer c.Close()
		err := harness.Eventually("node "+d.ready.Nodes[node].ID+" has the function", func() error {
			return c.FCall(t.Context(), "speak", nil).Err()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	speak(1) // What is there already is shown, too.
	cmd, lines := follow(t, "speaker", "-p", port)
	seen := map[string]int{}
	var last time.Time
	next := func() {
		t.Helper()
		select {
		case l, open := <-lines:
			if !open || l.Text != "a line" || l.Function != "speak" || l.At.Before(last) {
				t.Fatalf("%+v, open %v, after %v", l, open, last)
			}
			last = l.At
			seen[l.Node]++
		case <-time.After(harness.Patience):
			t.Fatalf("no line came; so far: %v", seen)
		}
	}
	next()
	for round := range 2 {
		for node := range 3 {
			speak(node)
			next()
		}
		if len(seen) != 3 {
			t.Errorf("after round %d there were lines of %v", round, seen)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for l := range lines {
		t.Errorf("%+v was shown twice, or nobody spoke", l)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	if o := run(t, "", "fn", "logs", "speaker", "-p", port, "--json"); len(o.stdout) == 0 {
		t.Errorf("without -f there is nothing: %s", o.stderr)
	}
}
