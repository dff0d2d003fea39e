package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// child is this program in another role, in a process that ends with the
// experiment, and may say a word of JSON.
type child struct {
	name string
	cmd  *exec.Cmd
	out  *json.Decoder
	said *tail
	done chan struct{}
	err  error
}

// startChild runs `ostro args...`.
func startChild(name string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return startProgram(name, self, args...)
}

// startProgram runs another program so.
func startProgram(name, program string, args ...string) (*child, error) {
	c := &child{name: name, cmd: exec.Command(program, args...), said: &tail{}, done: make(chan struct{})}
	c.cmd.Stderr = c.said
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c.out = json.NewDecoder(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	left.running(c.cmd.Process.Pid)
	go func() {
		_, err := c.cmd.Process.Wait()
		left.ended(c.cmd.Process.Pid)
		c.err = err
		close(c.done)
	}()
	return c, nil
}

// hear takes the next word of the child.
func (c *child) hear(into any) error {
	if err := c.out.Decode(into); err != nil {
		return fmt.Errorf("%s said nothing more (%w); last words: %s", c.name, err, c.said)
	}
	return nil
}

// await returns when the child answers, or cannot any more.
func (c *child) await(ctx context.Context, answers func() error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := answers()
		if err == nil {
			return nil
		}
		select {
		case <-c.done:
			return fmt.Errorf("%s ended: %s", c.name, c.said)
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", c.name, err)
		case <-tick.C:
		}
	}
}

// kill ends the process at once; a stopped one, too.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.done
}

// endWithin is how long a child may take to end in good order.
const endWithin = 20 * time.Second

// end asks the process to end, and kills it if it does not: one with children of
// its own must end them.
func (c *child) end() {
	_ = c.signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(endWithin):
		c.kill()
	}
}

func (c *child) signal(s syscall.Signal) error {
	if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", c.name, err)
	}
	return nil
}

// cpu is how long the process has run, to the nanosecond: /proc counts in
// hundredths of a second, and a replica that does nothing takes less.
func (c *child) cpu() (time.Duration, error) { return exactCPUTime(c.cmd.Process.Pid) }

// exactCPUTime reads a process' clock (clock_getcpuclockid(3)).
func exactCPUTime(pid int) (time.Duration, error) {
	const scheduled = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &ts); err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}
