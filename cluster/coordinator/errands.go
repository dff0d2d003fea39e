package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

// errand is a wish that takes migrations.
type errand struct {
	moves  []view.Move               // what is left to move, as of now
	why    string                    // as the migrations tell it
	mine   func(meta.Migration) bool // whether one is of this kind
	done   func() error              // when nothing is left
	refuse func(why string) error    // when it is given up
}

// mostTries is how many migrations of an errand may fail before it is given up.
const mostTries = 8

// carryOut asks for the migrations of a wish, and again for what is left when they have ended. Whoever
// cancels one of them does not want the rest either.
func (c *coordinator) carryOut(ctx context.Context, s *meta.Snapshot, n view.NodeID, w meta.Wish, e errand) error {
	if open := s.Open(n); len(open) > 0 {
		return c.term.Defer(ctx, n, w, e.why+": "+movesText(open))
	}
	if why := e.givenUp(s, w); why != "" {
		return e.refuse(why)
	}
	if len(e.moves) == 0 {
		return e.done()
	}
	asked, err := c.term.Migrate(ctx, e.why, e.moves...)
	if err != nil {
		err = fmt.Errorf("%s: %w", e.why, err)
		return errors.Join(err, c.term.Defer(ctx, n, w, err.Error()))
	}
	c.Log.Info("keys are moved", "why", e.why, "migrations", asked)
	return nil
}

// givenUp says why an errand is not carried on with.
func (e errand) givenUp(s *meta.Snapshot, w meta.Wish) string {
	failed, last := 0, ""
	for _, m := range s.AllMigrations() {
		switch {
		case !e.mine(m) || m.ID <= w.After:
		case m.Stage == meta.Cancelled:
			return fmt.Sprintf("%s: migration %d was cancelled, so the rest was not done", e.why, m.ID)
		case m.Stage == meta.Failed:
			failed, last = failed+1, m.Why
		}
	}
	if failed >= mostTries {
		return fmt.Sprintf("%s: %d migrations have failed, the last because %s; look at `ostro migrate list`", e.why, failed, last)
	}
	return ""
}

func movesText(open []meta.Migration) string {
	if len(open) == 1 {
		return fmt.Sprintf("migration %d is under way", open[0].ID)
	}
	var ids []string
	for _, m := range open {
		ids = append(ids, fmt.Sprint(m.ID))
	}
	return "migrations " + strings.Join(ids, ", ") + " are under way"
}
