package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
)

// devCluster is a cluster on this machine, with all its processes.
type devCluster struct {
	flags  *devFlags
	dir    string
	out    *devVoice
	killed bool // the last run in this directory did not end by itself
	secret string
	fabric string // of nodes; empty: each its own tcp
	etcd   *meta.Embedded
	log    *os.File // etcd's

	failed   chan error    // something that cannot go on
	isReady  atomic.Bool   // clients could connect to all nodes, once
	stopping chan struct{} // closed when all shall end
	watchers sync.WaitGroup

	adding sync.Mutex // held while a node is added

	mu    sync.Mutex
	state clusterState
	nic   *child
	nodes map[string]*child // by id
}

// run has the cluster up until ctx ends or it cannot go on.
func (d *devCluster) run(ctx context.Context) error {
	d.failed, d.stopping, d.nodes = make(chan error, 1), make(chan struct{}), map[string]*child{}
	if err := d.checkPorts(); err != nil {
		return err
	}
	err := d.up(ctx)
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-d.failed:
		}
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // It was stopped while it started.
	}
	d.down()
	return err
}

// checkPorts finds out early whether another program has one of our ports. Processes of a former
// run that was killed may be about to end.
func (d *devCluster) checkPorts() error {
	end := time.Now()
	if d.killed {
		end = end.Add(5 * time.Second)
	}
	for {
		err := d.takenPort()
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (d *devCluster) takenPort() error {
	if err := portFree(strings.TrimPrefix(d.state.Etcd, "etcd://"), "etcd"); err != nil {
		return err
	}
	for _, n := range d.state.Nodes {
		for _, use := range [][2]string{{n.ID, n.Redis}, {n.ID + "'s native clients", n.Native}, {n.ID + "'s status page", n.Admin}} {
			if err := portFree(use[1], use[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

func portFree(addr, use string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("another program has %s, which %s would use: stop it, or choose other ports with --port", addr, use)
	}
	return l.Close()
}

// up starts everything and returns when clients can connect.
func (d *devCluster) up(ctx context.Context) error {
	var err error
	if d.secret, err = d.secretFile(); err != nil {
		return err
	}
	if err := d.startEtcd(ctx); err != nil {
		return err
	}
	if err := d.setBalancer(ctx); err != nil {
		return err
	}
	if err := d.startNIC(ctx); err != nil {
		return err
	}
	for _, n := range d.state.Nodes {
		if err := d.startNode(n); err != nil {
			return err
		}
	}
	if err := d.listen(); err != nil {
		return err
	}
	if err := d.await(ctx); err != nil {
		return err
	}
	d.isReady.Store(true)
	d.out.ready(d.snapshot(), d.dir, d.flags)
	return nil
}

func (d *devCluster) startEtcd(ctx context.Context) error {
	var err error
	d.log, err = os.OpenFile(filepath.Join(d.dir, "etcd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(d.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d.etcd, err = meta.StartEmbedded(ctx, meta.EmbeddedConfig{
		Dir: filepath.Join(d.dir, "etcd"), Addr: strings.TrimPrefix(d.state.Etcd, "etcd://"), Log: log,
	})
	return err
}

// setBalancer has the balancer do what was asked for, if anything was.
func (d *devCluster) setBalancer(ctx context.Context) error {
	if d.flags.balance == "" {
		return nil
	}
	config, err := meta.ParseURL(d.state.Etcd)
	if err != nil {
		return err
	}
	s, err := meta.Open(ctx, config)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.SetBalancer(ctx, meta.Balancer{Mode: meta.BalancerMode(d.flags.balance)})
}

// startNode starts one and watches it from then on.
func (d *devCluster) startNode(n clusterNode) error {
	c := &child{name: n.ID, log: n.Log, args: d.nodeArgs(n)}
	if err := c.start(); err != nil {
		return err
	}
	d.mu.Lock()
	d.nodes[n.ID] = c
	d.mu.Unlock()
	d.save()
	d.watchers.Go(func() { d.watch(c, d.flags.respawn) })
	return nil
}

func (d *devCluster) nodeArgs(n clusterNode) []string {
	_, port, _ := net.SplitHostPort(n.Redis)
	_, native, _ := net.SplitHostPort(n.Native)
	args := []string{
		"server", "--bind", "127.0.0.1", "--port", port, "--dir", n.Dir, "--admin-addr", n.Admin,
		"--cluster", d.state.Etcd, "--node-id", n.ID, "--cluster-port", native, "--cluster-secret-file", d.secret,
		"--replication", d.flags.replication, "--proxy", strconv.FormatBool(d.flags.proxy),
		"--cluster-replicas", strconv.Itoa(d.flags.copies(len(d.state.Nodes))), "--cluster-min-nodes", strconv.Itoa(len(d.state.Nodes)),
		"--cluster-lease", d.flags.lease.String(), "--log-level", d.flags.logLevel,
		// The machine's memory is for all of them.
		"--memory-limit", strconv.Itoa(max(1, 60/len(d.state.Nodes))) + "%",
	}
	if d.fabric != "" {
		args = append(args, "--fabric", d.fabric)
	}
	for _, text := range d.flags.set {
		key, value, _ := strings.Cut(text, "=")
		args = append(args, "--"+key+"="+value) // The last one counts.
	}
	return args
}

// snapshot is the state with the processes that run now.
func (d *devCluster) snapshot() clusterState {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.state
	s.PID = os.Getpid()
	if d.nic != nil {
		s.NIC = d.nic.pid()
	}
	s.Nodes = slices.Clone(s.Nodes)
	for i, n := range s.Nodes {
		if c := d.nodes[n.ID]; c != nil {
			s.Nodes[i].PID = c.pid()
		}
	}
	return s
}

// save tells other commands of the state.
func (d *devCluster) save() {
	if err := d.snapshot().write(d.dir); err != nil {
		d.out.trouble("the file " + stateName + " cannot be written: " + err.Error())
	}
}

// How a child is started again: soon, and less so if it ends at once each time.
const (
	firstPause  = 500 * time.Millisecond
	longestWait = 20 * time.Second
	quickEnd    = 5 * time.Second
	mostQuick   = 5 // quick ends in a row before the first good start
)

// watch starts a child again whenever it ends.
func (d *devCluster) watch(c *child, respawn bool) {
	wait, quick := firstPause, 0
	for {
		select {
		case <-c.gone():
		case <-d.stopping:
			return
		}
		how, ran := c.end()
		d.save()
		if quick++; ran > quickEnd {
			wait, quick = firstPause, 0
		}
		if quick >= mostQuick {
			d.fail(fmt.Errorf("%s ends again and again (%s); the end of %s:\n%s", c.name, how, c.log, c.lastWords(12)))
			return
		}
		if !respawn || d.removed(c) {
			d.out.died(c, how, 0)
			if !d.isReady.Load() && !d.removed(c) { // Nobody else would end the wait for it.
				d.fail(fmt.Errorf("%s ended before the cluster was ready (%s); the end of %s:\n%s", c.name, how, c.log, c.lastWords(12)))
			}
			return
		}
		d.out.died(c, how, wait)
		select {
		case <-time.After(wait):
		case <-d.stopping:
			return
		}
		wait = min(2*wait, longestWait)
		if err := c.start(); err != nil {
			d.fail(err)
			return
		}
		d.save()
		d.out.respawned(c)
	}
}

// removed tells whether a child is no longer part of the cluster.
func (d *devCluster) removed(c *child) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return c != d.nic && d.nodes[c.name] != c
}

func (d *devCluster) fail(err error) {
	select {
	case d.failed <- err:
	default:
	}
}

// stopTimeout is how long the processes may take to end in good order.
const stopTimeout = 40 * time.Second

// down ends everything, the NIC and etcd last.
func (d *devCluster) down() {
	close(d.stopping)
	d.watchers.Wait()
	d.out.stopping()
	d.end(d.children()...)
	if d.nic != nil {
		d.end(d.nic)
	}
	if d.etcd != nil {
		d.etcd.Close()
	}
	if d.log != nil {
		_ = d.log.Close()
	}
	if len(d.nodes) > 0 {
		d.mu.Lock()
		s := d.state
		d.mu.Unlock()
		_ = s.write(d.dir)
	}
	d.out.stopped()
}

func (d *devCluster) children() (all []*child) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.nodes {
		all = append(all, c)
	}
	return all
}

// end asks processes to end, and kills those that do not.
func (d *devCluster) end(children ...*child) {
	for _, c := range children {
		c.signal(syscall.SIGCONT)
		c.signal(syscall.SIGTERM)
	}
	late := time.After(stopTimeout)
	for _, c := range children {
		if c.gone() == nil {
			continue
		}
		select {
		case <-c.gone():
		case <-late:
			d.out.trouble(c.name + " does not end and is killed: the next start brings everything back that was acknowledged")
			c.signal(syscall.SIGKILL)
			<-c.gone()
		}
	}
}
