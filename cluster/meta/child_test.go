package meta

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
)

// childMain is a node in a process of its own: it joins, stands for
// coordinator if asked to, says "ready", and answers every line with whether it may serve.
func childMain(args []string) {
	addr, cluster, id, stands := args[0], args[1], args[2], args[3] == "coordinator"
	ctx := context.Background()
	s, err := Open(ctx, Config{Endpoints: []string{addr}, Cluster: cluster, Log: quiet, DialTimeout: time.Minute})
	var m *Member
	if err == nil {
		m, err = s.Join(ctx, nodeNamed(view.NodeID(id)))
	}
	if err == nil && stands {
		_, err = m.Campaign(ctx)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(m.Lease.Alive())
	}
}

type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func startChild(t *testing.T, id, role string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], shared.Addr(), clusterOf(t), id, role)
	cmd.Env = append(os.Environ(), roleVariable+"=node")
	in, err := cmd.StdinPipe()
	ok(t, err)
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	c := &child{t, cmd, in, bufio.NewReader(out)}
	if line := c.line(); line != "ready\n" {
		t.Fatalf("the other process says %q", line)
	}
	return c
}

func (c *child) line() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	ok(c.t, err)
	return line
}

func (c *child) signal(s syscall.Signal) { ok(c.t, c.cmd.Process.Signal(s)) }

func (c *child) ask() {
	_, err := io.WriteString(c.in, "may you serve?\n")
	ok(c.t, err)
}
