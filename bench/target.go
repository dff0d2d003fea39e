package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ostrodb/ostro/internal/port"
)

// target is a RESP server that is measured; proc is nil if somebody else runs it.
type target struct {
	Name    string `json:"name"`
	Addr    string `json:"addr"`
	Version string `json:"version"`
	Pid     int    `json:"-"` // 0 where it is not on this machine
	proc    *process
	wait    int       // how many replicas each write waits for by a command of its own
	others  []*target // its replicas, which end with it
	cluster *cluster  // that it is a node of, and that ends with it
}

// process is a server that the benchmark started.
type process struct {
	cmd    *exec.Cmd
	output *tail
	dir    string // its data, removed with it; empty where the caller owns it
	exited chan struct{}
	err    error
}

// launch says how to start a server.
type launch struct {
	name    string
	program string
	args    []string // {port} and {dir} stand for those
	dir     string   // data directory; empty: a temporary one
	cpus    string   // cores to keep it on, as taskset takes them; empty: any
}

// startTimeout is how long a server may take until it answers; recovery of much
// data counts.
const startTimeout = 10 * time.Minute

// start runs the server and returns when it answers PING.
func (l launch) start(ctx context.Context) (*target, error) {
	own, err := port.Reserve()
	if err != nil {
		return nil, err
	}
	defer own.Release() // By then the server has it.
	p := &process{output: &tail{}, exited: make(chan struct{})}
	dir := l.dir
	if dir == "" {
		if dir, err = makeDir(""); err != nil {
			return nil, fmt.Errorf("make a data directory: %w", err)
		}
		p.dir = dir
	}
	words := append([]string{l.program}, l.args...)
	if l.cpus != "" {
		words = append([]string{"taskset", "-c", l.cpus}, words...)
	}
	fill := strings.NewReplacer("{port}", strconv.Itoa(own.Number), "{dir}", dir)
	for i := range words {
		words[i] = fill.Replace(words[i])
	}
	p.cmd = exec.Command(words[0], words[1:]...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, p.output, p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		p.removeDir()
		return nil, fmt.Errorf("start %s: %w", l.name, err)
	}
	left.running(p.cmd.Process.Pid)
	go func() {
		p.err = p.cmd.Wait()
		left.ended(p.cmd.Process.Pid)
		close(p.exited)
	}()
	t := &target{Name: l.name, Addr: own.Addr(), Pid: p.cmd.Process.Pid, proc: p}
	if err := t.waitReady(ctx); err != nil {
		t.kill()
		return nil, fmt.Errorf("start %s: %w", l.name, err)
	}
	t.Version = versionOf(t.Addr)
	return t, nil
}

// pollEvery is short against anything that is measured with it.
const pollEvery = 2 * time.Millisecond

// waitReady returns when the server answers, or cannot any more.
func (t *target) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ready(t.Addr)
		if err == nil {
			return nil
		}
		select {
		case <-t.proc.exited:
			return fmt.Errorf("it ended (%v): %s", t.proc.err, t.proc.output)
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w; last words: %s", err, t.proc.output)
		case <-tick.C:
		}
	}
}

// attach takes a server that is already running.
func attach(addr string) (*target, error) {
	if err := ready(addr); err != nil {
		return nil, fmt.Errorf("reach the server at %s: %w", addr, err)
	}
	c, err := dialControl(addr)
	if err != nil {
		return nil, err
	}
	defer c.close()
	t := &target{Name: addr, Addr: addr, Version: versionOf(addr)}
	// The process id says nothing about a server on another machine.
	if pid, err := c.info("server", "process_id"); err == nil && isLocal(addr) {
		t.Pid, _ = strconv.Atoi(pid)
	}
	return t, nil
}

func isLocal(addr string) bool {
	host, _, _ := net.SplitHostPort(addr)
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// versionOf is what the server calls itself.
func versionOf(addr string) string {
	c, err := dialControl(addr)
	if err != nil {
		return ""
	}
	defer c.close()
	for _, field := range []string{"ostro_version", "valkey_version", "redis_version"} {
		if v, err := c.info("server", field); err == nil {
			return strings.TrimSuffix(field, "_version") + " " + v
		}
	}
	return ""
}

// kill ends the process as a crash would, and waits until it is gone. Its own
// data directory stays for a restart.
func (t *target) kill() {
	if t.proc != nil {
		_ = t.proc.cmd.Process.Kill() // it may be gone already
		<-t.proc.exited
	}
}

// stop kills the server if the benchmark started it, and removes its data.
func (t *target) stop() {
	for _, o := range t.others {
		o.stop()
	}
	if t.cluster != nil {
		t.cluster.stop()
	}
	if t.proc != nil {
		t.kill()
		t.proc.removeDir()
	}
}

func (p *process) removeDir() {
	if p.dir != "" {
		os.RemoveAll(p.dir)
	}
}

// tail keeps the last words of a process for the error message.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 2048

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if over := len(t.b) - tailBytes; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}

// redisServer and ostroServer say how those two are started. Both listen on
// loopback only and keep nothing on disk unless args say otherwise.
func redisServer(program string, args []string) launch {
	return launch{name: "redis", program: program, args: append([]string{
		"--port", "{port}", "--bind", "127.0.0.1", "--dir", "{dir}", "--save", "", "--appendonly", "no",
	}, args...)}
}

func ostroServer(program string, args []string) launch {
	return launch{name: "ostro", program: program, args: append([]string{
		"server", "--port", "{port}", "--bind", "127.0.0.1", "--dir", filepath.Join("{dir}", "data"), "--admin-addr", "", "--log-level", "warn",
	}, args...)}
}
