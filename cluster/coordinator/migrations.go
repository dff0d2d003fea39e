package coordinator

import (
	"context"
	"errors"
	"fmt"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

// migrations ends those that wait for a node which is dead. Those by which something has changed hands end with the
// recovery of their node, and what waits for a node that owns something too.
func (c *coordinator) migrations(ctx context.Context, s *meta.Snapshot) error {
	var errs []error
	for _, m := range s.AllMigrations() {
		n, dead := deadOf(s, m)
		switch {
		case m.Stage != meta.Wanted && m.Stage != meta.Copying || !dead:
		case c.now().Before(c.patientUntil):
			c.again = true
		default:
			c.Log.Warn("a migration has failed before anything had changed hands", "migration", m.ID, "node", n)
			errs = append(errs, c.term.FailMigration(ctx, m.ID, fmt.Sprintf("%s is not alive", n)))
		}
	}
	return errors.Join(errs...)
}

// deadOf returns which of a migration's nodes has no lease.
func deadOf(s *meta.Snapshot, m meta.Migration) (view.NodeID, bool) {
	for _, n := range []view.NodeID{m.Source, m.Target} {
		if !s.IsAlive(n) {
			return n, true
		}
	}
	return "", false
}
