package meta

import "context"

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
