package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// child is a process of a cluster on this machine: a node, or the NIC. Its log goes to a file.
type child struct {
	name string
	log  string // path
	args []string

	mu      sync.Mutex
	process *os.Process // nil while it does not run
	started time.Time
	ended   chan struct{} // closed when the process of the last start has ended
	state   *os.ProcessState
}

// start runs the process with this program's binary.
func (c *child) start() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the ostro binary: %w", err)
	}
	out, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(self, c.args...)
	cmd.Stdout, cmd.Stderr = out, out
	// A group of its own: Ctrl-C on a terminal is for us, who then stop all in good order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := spawn(cmd.Start); err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ended := make(chan struct{})
	c.process, c.started, c.ended = cmd.Process, time.Now(), ended
	go func() {
		_ = cmd.Wait()
		c.mu.Lock()
		c.process, c.state = nil, cmd.ProcessState
		c.mu.Unlock()
		close(ended)
	}()
	return nil
}

// pid is 0 while it does not run.
func (c *child) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return 0
	}
	return c.process.Pid
}

// signal sends a signal, if it runs.
func (c *child) signal(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil {
		_ = c.process.Signal(s)
	}
}

// gone is closed when the process of the last start has ended.
func (c *child) gone() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// end is how the process ended and how long it had run.
func (c *child) end() (how string, ran time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.String(), time.Since(c.started)
}

// lastWords is the end of its log, for reports.
func (c *child) lastWords(lines int) string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// A child ends with the thread that started it, if not before: that is how none outlives us,
// even if we are killed. So that thread must never end, and only this one starts children.
var (
	spawnOnce sync.Once
	spawning  chan func()
)

func spawn(start func() error) error {
	spawnOnce.Do(func() {
		spawning = make(chan func())
		go func() {
			runtime.LockOSThread()
			for f := range spawning {
				f()
			}
		}()
	})
	done := make(chan error)
	spawning <- func() { done <- start() }
	return <-done
}
