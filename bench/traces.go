package bench

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// traces are what an experiment leaves on the machine while it runs: groups of processes and directories. Who makes one
// removes it in good order; what is left when an experiment was interrupted and does not come to its end
// is removed from here.
type traces struct {
	mu     sync.Mutex
	groups map[int]bool // by the process that leads it
	dirs   map[string]bool
}

// left are those of this process.
var left = traces{groups: map[int]bool{}, dirs: map[string]bool{}}

// makeDir makes a directory for data in another one, or where temporary files are.
func makeDir(in string) (string, error) {
	dir, err := os.MkdirTemp(in, "ostro-bench-")
	if err != nil {
		return "", err // Who asked says what for.
	}
	left.mu.Lock()
	defer left.mu.Unlock()
	left.dirs[dir] = true
	return dir, nil
}

// running notes a process that was started, which leads a group; ended forgets it.
func (t *traces) running(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.groups[pid] = true
}

func (t *traces) ended(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.groups, pid)
}

// remove kills all processes and removes all directories, once they are gone.
func (t *traces) remove() error {
	t.mu.Lock()
	for pid := range t.groups {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
	dirs := t.dirs
	t.dirs = map[string]bool{}
	t.mu.Unlock()
	var errs []error
	for dir := range dirs {
		errs = append(errs, removeBusy(dir))
	}
	return errors.Join(errs...)
}

// removeBusy removes a directory in which processes that were killed may still make a file, or their children until they
// hear of it.
func removeBusy(dir string) (err error) {
	const tries, pause = 20, 20 * time.Millisecond
	for range tries {
		if err = os.RemoveAll(dir); err == nil {
			if _, err = os.Stat(dir); os.IsNotExist(err) {
				return nil
			}
		}
		time.Sleep(pause)
	}
	return err
}

// errInterrupted ends an experiment that somebody did not want to go on.
var errInterrupted = errors.New("interrupted: there is no result; what was started was ended")

// grace is how long an experiment has to come to its end after it was interrupted.
const grace = 2 * time.Second

// interruptible runs measure. If ctx ends, it has the grace to end what it started; then that is done for it, and nobody
// waits for it any more: the process is about to end.
func interruptible(ctx context.Context, grace time.Duration, measure func() (outcome, error)) (outcome, error) {
	type result struct {
		out outcome
		err error
	}
	over := make(chan result, 1)
	go func() {
		out, err := measure()
		over <- result{out, err}
	}()
	select {
	case r := <-over:
		return r.out, r.err
	case <-ctx.Done():
	}
	select {
	case <-over:
	case <-time.After(grace):
	}
	return nil, errors.Join(errInterrupted, left.remove())
}
