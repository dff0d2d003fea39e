package server

import (
	"context"
	"path/filepath"
	"runtime"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/sched"
)

// openTenants reads who shares a server on its own. Without a directory they end with it, as does what they have.
func (n *Node) openTenants(st *store.Store) error {
	path := ""
	if n.cfg.Dir != "" {
		path = filepath.Join(n.cfg.Dir, "tenants.json")
	}
	book, err := tenant.OpenFile(path)
	if err != nil {
		return err
	}
	tenants, err := tenant.Open(context.Background(), book, st, n.log.With("part", "tenants"), n.cfg.turns())
	if err != nil {
		return err
	}
	n.tenants.Store(tenants)
	return nil
}

// turns is how functions take turns.
func (c *Config) turns() sched.Options {
	return sched.Options{
		Workers: runtime.NumCPU(), Deadline: c.FunctionDeadline, NoStealing: !c.FunctionStealing, NoLocality: !c.FunctionLocality,
	}
}

// Scheduler tells how functions take turns, once clients are served.
func (n *Node) Scheduler() (m sched.Metrics, has bool) {
	if r := n.tenants.Load(); r != nil {
		return r.Scheduler(), true
	}
	return m, false
}

// Tenants returns what tenants use, once clients are served.
func (n *Node) Tenants() []tenant.Usage {
	if r := n.tenants.Load(); r != nil {
		return r.Usage()
	}
	return nil
}
