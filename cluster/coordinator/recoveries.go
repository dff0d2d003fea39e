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
	found := c.Survey.Survey(ctx, r.Log, whoMayHave(s, r.Log, r.Node), true)
	if waitFor, ok := s.Recoverable(r.Log, found.Answered); !ok {
		c.again = true
		return c.tell(ctx, r.Log, fmt.Sprintf("fencing waits for one of %s: start them, or say `ostro cluster remove NODE --lost` of those that never come back", names(waitFor)))
	}
	plan, err := found.Plan()
	if err != nil {
		c.again = true
		return errors.Join(c.tell(ctx, r.Log, "planning: "+err.Error()), err)
	}
	plan, err = c.term.SetPlan(ctx, r.Log, plan)
	if err != nil {
		return err
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
