package store

import (
	"context"
	"slices"

	"github.com/ostrodb/ostro/engine/hlog"
)

// What an import brings is safe where it comes from: the logs of which it is made are kept until
// they are not needed any more. So it need not wait for copies of its own. It goes to side segments, and
// after Finish the places can be served; Adopt makes the copies, and after that the other logs may go.
//
// In between the newest of a place is in two logs, this one and the others, as in a
// migration. Whoever has to replay them takes both, and of each key the highest version wins. For that
//   - versions that are given here are above those that were imported, and above tombstones, as always;
//   - this log keeps its tombstones of these places, though nothing in it is older: see cleaning.settles;
//   - what is removed for being below a tombstone is removed by the log's own heads, and durable before
//     Finish returns.

// newSession gives a worker its session: one of a side, if there are such. The caller holds mu.
func (im *Importer) newSession() (*Session, error) {
	if len(im.aside) == 0 {
		return im.st.NewSession()
	}
	ss, side, err := im.st.NewSideSession()
	if err == nil {
		im.sides = append(im.sides, side)
	}
	return ss, err
}

// ordinary gives all workers sessions that may remove records, which those of sides may not.
func (im *Importer) ordinary(workers []*ImportWorker) error {
	if len(im.aside) == 0 {
		return nil
	}
	for _, w := range workers {
		ss, err := im.st.NewSession()
		if err != nil {
			return err
		}
		w.ss.Close()
		w.ss = ss
	}
	return nil
}

// Adopt returns when all that was imported is part of the log: in all copies of it, and in every recovery.
// The logs that it came from are not needed for it then; whoever has let go of them says Arrived. It is
// called after Finish; after an error it may be called again.
func (im *Importer) Adopt(ctx context.Context) error {
	for _, s := range im.openSides() {
		if err := s.Close(ctx); err != nil {
			return err
		}
		im.mu.Lock()
		im.sides = slices.DeleteFunc(im.sides, func(o *hlog.Side) bool { return o == s })
		im.mu.Unlock()
	}
	return im.st.log.AwaitSides(ctx) // Records that it passed over may be in those of an import that was broken off.
}

// Pending is how many side segments are not part of the log yet.
func (im *Importer) Pending() (n int) {
	for _, s := range im.openSides() {
		n += s.Pending()
	}
	return n
}

func (im *Importer) openSides() []*hlog.Side {
	im.mu.Lock()
	defer im.mu.Unlock()
	return slices.Clone(im.sides)
}

// leaveSides has sides adopted in the background.
func (im *Importer) leaveSides() {
	ended, end := context.WithCancel(context.Background())
	end()
	for _, s := range im.openSides() {
		_ = s.Close(ended) // It does not wait.
	}
}
