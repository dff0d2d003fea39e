package server

import (
	"context"
	"path/filepath"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant"
)

// openTenants reads who shares a server on its own.
func (n *Node) openTenants(st *store.Store) error {
	book, err := tenant.OpenFile(filepath.Join(n.cfg.Dir, "tenants.json"))
	if err != nil {
		return err
	}
	tenants, err := tenant.Open(context.Background(), book, st, n.log.With("part", "tenants"))
	if err != nil {
		return err
	}
	n.tenants.Store(tenants)
	return nil
}
