package harness

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ostrodb/ostro/internal/port"
)

// Server is one process of `ostro server`.
type Server struct {
	cmd     *exec.Cmd
	port    *port.Reservation
	addr    string // where Redis clients connect, once it serves
	serving chan struct{}
	exited  chan struct{}

	mu  sync.Mutex
	log strings.Builder
}

// Launch starts a server and returns at once. It listens on a port of its own of
// the loopback; its admin port is off unless args turn it on.
func Launch(t testing.TB, binary string, args ...string) *Server {
	t.Helper()
	own, err := port.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{port: own, serving: make(chan struct{}), exited: make(chan struct{})}
	args = append([]string{"server", "--log-format", "json", "--bind", "127.0.0.1", "--admin-addr", "", "--port", strconv.Itoa(own.Number)}, args...)
	s.cmd = exec.Command(binary, args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		own.Release()
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	go s.follow(stderr)
	return s
}

// follow keeps the log, and notices the line that says where to connect.
func (s *Server) follow(stderr io.Reader) {
	lines := bufio.NewReader(stderr)
	for {
		text, err := lines.ReadString('\n')
		s.mu.Lock()
		s.log.WriteString(text)
		s.mu.Unlock()
		var line struct{ Msg, Addr string }
		if json.Unmarshal([]byte(text), &line) == nil && line.Msg == "serving" {
			s.addr = line.Addr
			close(s.serving)
		}
		if err != nil {
			break
		}
	}
	_ = s.cmd.Wait()
	s.port.Release()
	close(s.exited)
}

// Ready waits until the server serves, and answers a PING.
func (s *Server) Ready() error {
	select {
	case <-s.serving:
	case <-s.exited:
		return fmt.Errorf("the server ended with code %d instead of serving:\n%s", s.ExitCode(), s.Log())
	case <-time.After(Patience):
		return s.Hung("start")
	}
	c, err := s.Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	v, err := c.Do("PING")
	if err == nil && Text(v) != "PONG" {
		err = fmt.Errorf("PING was answered by %s", Text(v))
	}
	return err
}

// Serving is closed when clients can connect.
func (s *Server) Serving() <-chan struct{} { return s.serving }

// Exited is closed when the process has ended.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Kill ends the process by SIGKILL, if it has not ended, and waits for that.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// AskToStop sends SIGTERM.
func (s *Server) AskToStop() { _ = s.cmd.Process.Signal(syscall.SIGTERM) }

// Terminate asks the server to stop, and waits until it has.
func (s *Server) Terminate() error {
	s.AskToStop()
	select {
	case <-s.exited:
	case <-time.After(Patience):
		return s.Hung("end")
	}
	if s.ExitCode() != 0 {
		return fmt.Errorf("SIGTERM ended the server with code %d:\n%s", s.ExitCode(), s.Log())
	}
	return nil
}

// Pause stops the process by SIGSTOP and returns when it has stopped.
func (s *Server) Pause() error {
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	stat := fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid)
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		b, err := os.ReadFile(stat)
		if err != nil {
			return err
		}
		if _, state, ok := strings.Cut(string(b), ") "); ok && state[0] == 'T' {
			return nil
		}
	}
	return errors.New("SIGSTOP did not stop the server")
}

// Resume lets a paused process go on.
func (s *Server) Resume() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

// ExitCode is the code of an ended process; -1 if a signal ended it.
func (s *Server) ExitCode() int {
	<-s.exited
	return s.cmd.ProcessState.ExitCode()
}

// Log is what the server has written so far.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// Hung ends a process that does not do what it should, and reports what its
// goroutines were at.
func (s *Server) Hung(act string) error {
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-s.exited:
	case <-time.After(Patience / 6):
		s.Kill()
	}
	return fmt.Errorf("the server does not %s within %s:\n%s", act, Patience, s.Log())
}
