package meta

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
)

// Act is what a Wish asks for.
type Act string

const (
	// Drain asks that a node gives all away to others.
	Drain Act = "drain"
	// Add takes Drain back: the node may be given ranges and replicas again. With Share it is given
	// some at once.
	Add Act = "add"
	// Remove asks that a node is forgotten, which must have been drained or be dead.
	Remove Act = "remove"
)

// Wish is what an operator wants done with a node. It lies in etcd until a coordinator
// has done it, or says why not: so who wishes need not find the coordinator, and a wish outlives one.
type Wish struct {
	Act Act `json:"act"`
	// Lost, of Remove: the node never comes back; recoveries must not wait for it.
	Lost bool `json:"lost,omitempty"`
	// Share, of Add: others move to the node what makes its share like theirs.
	Share bool      `json:"share,omitempty"`
	At    time.Time `json:"at"`
	// After is the number of the last migration that there was before: those that it takes are later ones.
	After uint64 `json:"after,omitempty"`
	// Refused is why it will not be done. Such a wish waits for nothing but to be read.
	Refused string `json:"refused,omitempty"`
	// Waiting is what it waits for.
	Waiting string `json:"waiting,omitempty"`
}

// Wish asks for something to be done with a node, in place of what was asked for before, and returns what Fulfil takes.
func (s *Store) Wish(ctx context.Context, n view.NodeID, w Wish) (Wish, error) {
	if err := w.check(); err != nil {
		return w, err
	}
	w.At, w.Refused, w.Waiting = time.Now().UTC(), "", ""
	_, _, err := s.change(ctx, nil, func(e *edit) error {
		if _, known := e.seen.Nodes[n]; !known {
			return fmt.Errorf("there is no node %s: `ostro cluster status` lists them", n)
		}
		e.need(keyNode(n))
		w.After = e.seen.lastMigration
		return e.put(keyWish(n), w)
	})
	return w, err
}

// check tells what is wrong with a wish.
func (w Wish) check() error {
	if w.Act != Drain && w.Act != Add && w.Act != Remove {
		return fmt.Errorf("there is no act %q: use drain, add or remove", w.Act)
	}
	if w.Lost && w.Act != Remove {
		return errors.New("only a node that is removed can be lost for good")
	}
	if w.Share && w.Act != Add {
		return errors.New("only a node that is added can be given its share")
	}
	return nil
}

// Fulfil waits until a wish was granted, or says why it was not, and tells meanwhile what it waits for.
func (s *Store) Fulfil(ctx context.Context, n view.NodeID, asked Wish, waiting func(string)) error {
	c, err := s.Follow(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	last := ""
	got, err := c.Wait(ctx, func(seen *Snapshot) bool {
		w, there := seen.Wishes[n]
		if there = there && w.At.Equal(asked.At); !there {
			return true
		}
		if why := w.Waiting; why != last && why != "" && waiting != nil {
			waiting(why)
		}
		last = w.Waiting
		return w.Refused != ""
	})
	if err != nil {
		return err
	}
	switch w, there := got.Wishes[n]; {
	case there && !w.At.Equal(asked.At):
		return fmt.Errorf("somebody has asked for %s of %s since: the %s was given up", w.Act, n, asked.Act)
	case there:
		_ = s.withdraw(ctx, n, w)
		return errors.New(w.Refused)
	case !asked.holds(got, n):
		return fmt.Errorf("somebody has asked for something else of %s since: the %s was given up; look at `ostro cluster status`", n, asked.Act)
	}
	return nil
}

// holds tells whether a node is as a wish wanted it.
func (w Wish) holds(s *Snapshot, n view.NodeID) bool {
	_, known := s.Nodes[n]
	switch w.Act {
	case Drain:
		return !known || s.Draining(n)
	case Add:
		return known && !s.Draining(n)
	}
	return !known
}

// withdraw takes a wish back, unless another has taken its place.
func (s *Store) withdraw(ctx context.Context, n view.NodeID, w Wish) error {
	_, _, err := s.change(ctx, nil, func(e *edit) error {
		if now, there := e.seen.Wishes[n]; there && now.At.Equal(w.At) {
			e.delete(keyWish(n))
		}
		return nil
	})
	return err
}

// Granted says that a wish was done.
func (t *Term) Granted(ctx context.Context, n view.NodeID, w Wish) error {
	return t.answer(ctx, n, w, func(e *edit) error {
		e.delete(keyWish(n))
		return nil
	})
}

// Refuse says why a wish will not be done.
func (t *Term) Refuse(ctx context.Context, n view.NodeID, w Wish, why string) error {
	return t.answer(ctx, n, w, func(e *edit) error { return e.refuse(n, w, why) })
}

// refuse writes why a wish is not done.
func (e *edit) refuse(n view.NodeID, w Wish, why string) error {
	w.Refused, w.Waiting = why, ""
	return e.put(keyWish(n), w)
}

// Defer says what a wish waits for.
func (t *Term) Defer(ctx context.Context, n view.NodeID, w Wish, why string) error {
	return t.answer(ctx, n, w, func(e *edit) error {
		if w.Waiting == why {
			return nil
		}
		w.Waiting = why
		return e.put(keyWish(n), w)
	})
}

// answer changes a wish, unless another has taken its place.
func (t *Term) answer(ctx context.Context, n view.NodeID, w Wish, f func(*edit) error) error {
	return t.change(ctx, func(e *edit) error {
		if now, there := e.seen.Wishes[n]; !there || !now.At.Equal(w.At) {
			return nil
		}
		return f(e)
	})
}
