package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Process is a program that writes its log to a file, which goes on from one
// start to the next.
type Process struct {
	Name string // in reports

	binary string
	log    string // path
	space  *space // network namespace; nil is the caller's

	cmd    *exec.Cmd
	exited chan struct{}
	began  time.Time   // when it was last started
	ending atomic.Bool // somebody asked it to end
	kills  atomic.Int64
}

// start runs the program. It ends with the test binary, whatever ends that.
func (p *Process) start(args ...string) error {
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(p.binary, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	if err := p.space.enter(cmd.Start); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	p.cmd, p.exited, p.began = cmd, exited, began
	p.ending.Store(false)
	return nil
}

// Crashed says how the process ended if nobody had asked for that.
func (p *Process) Crashed() error {
	if p.cmd == nil || p.Running() || p.ending.Load() {
		return nil
	}
	return fmt.Errorf("%s ended by itself (%s):\n%s", p.Name, p.cmd.ProcessState, p.lastWords())
}

// lastWords is a panic with its stack, or the end of the log.
func (p *Process) lastWords() string {
	text, err := readEnd(p.log, 1<<20)
	if err != nil {
		return err.Error()
	}
	at := max(bytes.LastIndex(text, []byte("\nfatal error:")), bytes.LastIndex(text, []byte("\npanic:")))
	if at < 0 {
		return p.Tail(30)
	}
	return string(text[at:min(len(text), at+6000)])
}

// Running tells whether it was started and has not ended.
func (p *Process) Running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// PID is the process's, while it runs.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal, if the process runs.
func (p *Process) Signal(s syscall.Signal) {
	if p.Running() {
		_ = p.cmd.Process.Signal(s)
	}
}

// Kill ends the process by SIGKILL and waits for that.
func (p *Process) Kill() {
	if p.cmd != nil {
		if p.Running() {
			p.ending.Store(true)
			p.kills.Add(1)
		}
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// Terminate asks the process to stop, and waits until it has.
func (p *Process) Terminate() error {
	p.ending.Store(true)
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(Patience):
		p.Signal(syscall.SIGQUIT)
		return fmt.Errorf("%s did not end within %s of SIGTERM:\n%s", p.Name, Patience, p.Tail(200))
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s ended with code %d after SIGTERM:\n%s", p.Name, code, p.Tail(50))
	}
	return nil
}

// Pause stops the process by SIGSTOP and returns when all of it has stopped.
func (p *Process) Pause() error {
	p.Signal(syscall.SIGSTOP)
	stat := fmt.Sprintf("/proc/%d/stat", p.PID())
	return Eventually("SIGSTOP stops "+p.Name, func() error {
		b, err := os.ReadFile(stat)
		if err != nil {
			return err
		}
		if _, state, ok := strings.Cut(string(b), ") "); !ok || state[0] != 'T' {
			return fmt.Errorf("its state is %.1s", state)
		}
		return nil
	})
}

// Resume lets a paused process go on.
func (p *Process) Resume() { p.Signal(syscall.SIGCONT) }

// Tail is the last lines of its log.
func (p *Process) Tail(lines int) string {
	text, err := readEnd(p.log, 1<<20)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// readEnd reads the last bytes of a file.
func readEnd(name string, bytes int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > bytes {
		if _, err := f.Seek(-bytes, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(f)
}

// LogBytes is how much it has logged, over all its starts.
func (p *Process) LogBytes() int64 {
	info, err := os.Stat(p.log)
	if err != nil {
		return 0
	}
	return info.Size()
}

// tellOnFailure shows the end of the log if the test fails.
func (p *Process) tellOnFailure(t testing.TB, lines int) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s (%s):\n%s", p.Name, p.log, p.Tail(lines))
		}
	})
}

// Hopeless is an error that waiting does not mend.
type Hopeless struct{ error }

// GiveUp makes an error Hopeless.
func GiveUp(err error) error { return Hopeless{err} }

// Eventually waits until f returns nil, and says what was missing if it never does.
func Eventually(what string, f func() error) error {
	var err error
	var hopeless Hopeless
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		if err = f(); err == nil || errors.As(err, &hopeless) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("within %s it is not so that %s: %w", Patience, what, err)
}
