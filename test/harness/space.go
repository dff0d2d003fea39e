package harness

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// space is a network namespace that lives as long as its file is open. The nil
// space is the one that the caller is in.
type space struct{ file *os.File }

// newSpace makes a namespace with nothing but a loopback.
func newSpace() (*space, error) {
	s := &space{}
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		var err error
		s.file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, s.command("ip", "link", "set", "lo", "up")
}

// enter runs f in the namespace. What f starts or opens stays there.
func (s *space) enter(f func() error) error {
	if s == nil {
		return f()
	}
	return onThread(func() error {
		if err := unix.Setns(int(s.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return f()
	})
}

// onThread runs f on a thread of its own that is back in its network namespace
// afterwards. It must come back alive: children end with the thread that started them.
func onThread(f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer home.Close()
	err = f()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return fmt.Errorf("leave a network namespace: %w", back) // The thread stays locked: nobody else may use it.
	}
	runtime.UnlockOSThread()
	return err
}

// path is how other programs name the namespace.
func (s *space) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.file.Fd()) }

// command runs a program in the namespace.
func (s *space) command(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := s.enter(cmd.Start); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out.String())
	}
	return nil
}

func (s *space) close() { _ = s.file.Close() }
