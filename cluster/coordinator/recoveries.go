package coordinator

import (
	"context"
	"errors"
	"fmt"

	"github.com/ostrodb/ostro/cluster/meta"
)

// recoveries brings those that have begun one step on.
func (c *coordinator) recoveries(ctx context.Context, s *meta.Snapshot) error {
	var errs []error
	for _, r := range s.Recoveries {
		switch {
		case r.Done():
			errs = append(errs, c.finish(ctx, r))
		case r.Plan == nil:
			errs = append(errs, c.plan(ctx, s, r))
		}
	}
	return errors.Join(errs...)
}

// plan closes the log to its primary and says which part of it counts.
func (c *coordinator) plan(ctx context.Context, s *meta.Snapshot, r meta.Recovery) error {
	found := c.ask(ctx, s, r.Log, true)
	if waitFor, ok := s.Recoverable(r.Log, s.Heard(found.Answered)); !ok {
		c.again = true
		return c.tell(ctx, r.Log, fmt.Sprintf("fencing waits for one of %s: start them, or say `ostro cluster remove NODE --lost` of those that never come back", names(waitFor)))
	}
	if lacking := found.Lacking(); len(lacking) > 0 && !s.Lost(r.Node) {
		c.again = true
		return c.tell(ctx, r.Log, fmt.Sprintf("nobody has a copy of %d segments: start nodes that may have some, or say `ostro cluster remove %s --lost` to go on without them", len(lacking), r.Node))
	}
	plan, err := found.Plan()
	if err != nil {
		c.again = true
		return errors.Join(c.tell(ctx, r.Log, "planning: "+err.Error()), err)
	}
	plan.Without = found.Lacking()
	plan, err = c.term.SetPlan(ctx, r.Log, plan)
	if err != nil {
		return err
	}
	if len(plan.Without) > 0 {
		c.Log.Error("a recovery goes on without segments that an operator gave up: what was in them is lost", "node", r.Node, "segments", len(plan.Without))
	}
	c.Log.Info("a recovery is planned: heirs replay", "node", r.Node, "cut", plan.Cut, "roster", plan.Roster, "bytes", found.Bytes())
	return c.tell(ctx, r.Log, "replaying")
}

func (c *coordinator) finish(ctx context.Context, r meta.Recovery) error {
	if err := c.term.Finish(ctx, r.Log); err != nil {
		return err
	}
	delete(c.told, r.Log)
	c.Log.Info("a recovery has ended: all keys are served again", "node", r.Node)
	return nil
}
