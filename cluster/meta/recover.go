package meta

import (
	"context"
	"fmt"
	"slices"

	"github.com/ostrodb/ostro/cluster/view"
)

// Etcd takes 128 changes, and as many conditions, in one step. A recovery has up to four for each migration that has begun, three for
// each that has not, two for each heir, and some more.
const (
	fewWanted = 4        // are ended by the recovery itself
	fewBytes  = 16 << 10 // that they have together: see mostStep
	atOnce    = 24       // are ended in one step before it, if there are more
	// MaxHeirs is how many nodes take what a dead one had.
	MaxHeirs = 24
)

// forsake ends migrations of a dead node that have not begun, if they are many, or have many ranges: nobody limits how many are asked for.
func (t *Term) forsake(ctx context.Context, dead view.NodeID) error {
	for many := true; many; {
		err := t.change(ctx, func(e *edit) error {
			if err := e.needDead(dead); err != nil {
				return err
			}
			left := e.seen.migrations(func(m Migration) bool { return m.of(dead) && m.Stage == Wanted })
			if many = e.seen.fitting(left, fewWanted, fewBytes) < len(left); !many {
				return nil
			}
			for _, m := range left[:max(1, e.seen.fitting(left, atOnce, mostStep))] {
				if err := e.end(m, Failed, diedBefore(dead)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func diedBefore(dead view.NodeID) string {
	return fmt.Sprintf("%s died before anything had changed hands", dead)
}

// needDead makes the transaction depend on a node being dead and not recovered yet.
func (e *edit) needDead(dead view.NodeID) error {
	n, known := e.seen.Nodes[dead]
	switch {
	case !known:
		return fmt.Errorf("there is no node %s", dead)
	case e.seen.alive(dead):
		return fmt.Errorf("%s is alive: its ranges can be moved, not recovered", dead)
	case e.seen.Logs[n.Log].Retired:
		return fmt.Errorf("%s was recovered before", dead)
	}
	e.need(keyAlive(dead))
	return nil
}

// recover is the step from which on a node counts as dead.
func (e *edit) recover(dead view.NodeID, heirs []view.NodeID) (Recovery, error) {
	if err := e.needDead(dead); err != nil {
		return Recovery{}, err
	}
	if err := e.needAlive(heirs); err != nil {
		return Recovery{}, err
	}
	r := Recovery{Node: dead, Log: e.seen.Nodes[dead].Log}
	before, moves, err := e.endMigrations(&r)
	if err != nil {
		return Recovery{}, err
	}
	next, shares, err := before.Recover(dead, heirs...)
	if err != nil {
		return Recovery{}, err
	}
	for _, m := range shares {
		if old := e.log(e.seen.Nodes[m.To].Log).Leaving.Intersect(m.Ranges); len(old) > 0 {
			return Recovery{}, fmt.Errorf("%w: %s has not yet dropped what it had of %s before", ErrNotYet, m.To, old)
		}
		e.need(keyLog(e.seen.Nodes[m.To].Log))
		r.Parts = append(r.Parts, Part{Heir: m.To, Ranges: m.Ranges})
	}
	return r, e.writeRecovery(r, append(moves, shares...), next)
}

// endMigrations ends all in which r's node takes part. Nobody who lives gives anything up:
// what was on its way to or from the dead node is the other's, who replays the dead node's log, whether it is alive
// itself or not; if not, its own recovery hands that on. It returns the map after that, and what changed in it.
func (e *edit) endMigrations(r *Recovery) (m view.Map, moves []view.Move, err error) {
	m = e.seen.Map
	for _, mig := range e.seen.AllMigrations() {
		if mig.Stage.Ended() || !mig.of(r.Node) {
			continue
		}
		if mig.Stage == Wanted || mig.Stage == Copying {
			err = e.end(mig, Failed, diedBefore(r.Node))
		} else {
			var move *view.Move
			if move, err = e.endMigration(r, mig); err == nil && move != nil {
				moves = append(moves, *move)
				m, err = m.Apply(*move)
			}
		}
		if err != nil {
			return m, nil, err
		}
	}
	return m, moves, nil
}

// endMigration ends one that has begun, with the death of one of its nodes. The other takes part in
// the recovery, and gets the ranges unless it has them.
func (e *edit) endMigration(r *Recovery, m Migration) (*view.Move, error) {
	other, stage := m.Target, Done
	if m.Target == r.Node {
		other, stage = m.Source, Failed
	}
	if m.Stage == Returning {
		e.delete(keyReturn(m.ID))
	}
	r.Parts = append(r.Parts, Part{Heir: other, Ranges: m.Ranges})
	if err := e.end(m, stage, fmt.Sprintf("%s died: %s replays its log", r.Node, other)); err != nil {
		return nil, err
	}
	owner := m.Target
	if m.Stage == Returning {
		owner = m.Source
	}
	if owner == other {
		return nil, nil
	}
	return &view.Move{Ranges: m.Ranges, From: owner, To: other}, nil
}

func (e *edit) writeRecovery(r Recovery, moves []view.Move, next view.Map) error {
	retired := e.log(r.Log)
	retired.Retired = true
	if err := e.putLog(retired); err != nil {
		return err
	}
	// What the dead node was to replay for others, its heirs replay.
	for other := range e.seen.Replays() {
		ours := slices.ContainsFunc(other.Parts, func(p Part) bool { return p.Heir == r.Node && !p.Done })
		if ours && !e.needed[other.key()] {
			if err := e.put(other.key(), other.inherited(r.Node, moves)); err != nil {
				return err
			}
		}
	}
	if err := e.put(keyRecovery(r.Log), r); err != nil {
		return err
	}
	return e.putMap(next)
}
