package casestudy

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
)

// cluster is a NIC and replicas, in processes of their own.
type cluster struct {
	place    Place
	priority int
	nic      *child
	replicas []*child
}

func startCluster(p Place, priority int) (*cluster, error) {
	c := &cluster{place: p, priority: priority, replicas: make([]*child, p.Replicas)}
	if err := c.restart(); err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

// restart starts the processes that are not there, on what those before have
// left. Without a NIC a replica is lost, too.
func (c *cluster) restart() (err error) {
	if c.nic == nil || c.nic.killed() {
		c.kill()
		if c.nic, err = startReady("the NIC", order{Role: "nic", Place: c.place, Priority: c.priority}); err != nil {
			return err
		}
	}
	for i, r := range c.replicas {
		if r != nil && !r.killed() {
			continue
		}
		if r != nil {
			r.end()
		}
		if c.replicas[i], err = startReady(fmt.Sprintf("replica %d", i), order{Role: "replica", Place: c.place, Index: i}); err != nil {
			return err
		}
	}
	return nil
}

// kill kills all processes.
func (c *cluster) kill() {
	for i, r := range c.replicas {
		if r != nil {
			r.end()
		}
		c.replicas[i] = nil
	}
	if c.nic != nil {
		c.nic.end()
	}
	c.nic = nil
}

// busy is processes that compute without end, many to a core. They are stopped
// but for the rounds that want them.
type busy []*child

func startBusy(perCore int) (b busy, err error) {
	for i := range perCore * runtime.NumCPU() {
		c, err := startReady(fmt.Sprintf("busy process %d", i), order{Role: "busy"})
		if err == nil {
			b = append(b, c)
			err = c.signal(syscall.SIGSTOP)
		}
		if err != nil {
			b.kill()
			return nil, err
		}
	}
	return b, nil
}

// set lets the processes compute, or stops them.
func (b busy) set(on bool) error {
	s := syscall.SIGSTOP
	if on {
		s = syscall.SIGCONT
	}
	var errs []error
	for _, c := range b {
		errs = append(errs, c.signal(s))
	}
	return errors.Join(errs...)
}

func (b busy) kill() {
	for _, c := range b {
		c.end()
	}
}
