package meta

import (
	"context"
	"errors"
	"fmt"

	"github.com/ostrodb/ostro/engine/record"
)

// writer writes as long as its fence stands. Members and Terms are writers.
type writer struct {
	store *Store
	fence fence
}

func (w writer) change(ctx context.Context, plan func(*edit) error) error {
	_, _, err := w.store.change(ctx, &w.fence, plan)
	return err
}

// Token is the revision that created what gives the right to write. Of two
// holders of one right, the later has the higher token.
func (w writer) Token() int64 { return w.fence.created }

// CreateTable gives a new table a name and a number that no table ever had.
func (w writer) CreateTable(ctx context.Context, name string) (Table, error) {
	var t Table
	if name == "" {
		return t, errors.New("a table needs a name")
	}
	err := w.change(ctx, func(e *edit) error {
		for _, other := range e.seen.Tables {
			if other.Name == name {
				return fmt.Errorf("there is a table %q already, number %d", name, other.ID)
			}
		}
		// The counter is written each time, so of two that create at once one plans again.
		t = Table{e.seen.lastTable + 1, name}
		if err := e.put(keyTableCounter, t.ID); err != nil {
			return err
		}
		return e.put(keyTable(t.ID), t)
	})
	return t, err
}

// DropTable forgets a table. Its number stays used.
func (w writer) DropTable(ctx context.Context, id record.TableID) error {
	return w.change(ctx, func(e *edit) error {
		if _, ok := e.seen.Tables[id]; !ok {
			return fmt.Errorf("there is no table number %d", id)
		}
		e.delete(keyTable(id))
		return nil
	})
}
