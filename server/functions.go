package server

import (
	"context"
	"path/filepath"

	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/library"
)

// functionsDir is where functions are kept; empty without a data directory.
func (c *Config) functionsDir() string {
	if c.Dir == "" {
		return ""
	}
	return filepath.Join(c.Dir, "functions")
}

// openFunctions reads what is installed on a server on its own. Without a directory it ends with it.
func (n *Node) openFunctions() error {
	book, err := library.OpenFiles(n.cfg.functionsDir())
	if err != nil {
		return err
	}
	functions, err := library.Open(context.Background(), n.libraryOptions(book, n.tenants.Load()))
	if err != nil {
		return err
	}
	n.functions.Store(functions)
	return nil
}

func (n *Node) libraryOptions(book library.Book, tenants *tenant.Registry) library.Options {
	o := library.Options{
		Book:    book,
		Gone:    func(o library.Owner) bool { return tenants.Deleted(int(o)) },
		Changed: tenants.Changed,
		Pool: func(name string) extension.PoolOptions {
			return extension.PoolOptions{Memory: n.functionMemory(tenants, name)}
		},
		Logger: n.log.With("part", "functions"),
	}
	if dir := n.cfg.functionsDir(); dir != "" {
		o.CacheDir = filepath.Join(dir, "cache")
	}
	return o
}

// functionMemory is what a tenant's functions take their memory from. Before it says no, instances without work go.
func (n *Node) functionMemory(tenants *tenant.Registry, name string) *tenant.Memory {
	memory := tenants.MemoryOf(name)
	memory.Relieve(func() {
		if l := n.functions.Load(); l != nil {
			l.Relieve(name)
		}
	})
	return memory
}

// Functions returns what tenants' functions have used, once clients are served.
func (n *Node) Functions() []library.Total {
	if l := n.functions.Load(); l != nil {
		return l.Totals()
	}
	return nil
}
