package meta

import (
	"fmt"
	"slices"

	"github.com/ostrodb/ostro/cluster/view"
)

// recover is the step from which on a node counts as dead.
func (e *edit) recover(dead view.NodeID, heirs []view.NodeID) (Recovery, error) {
	n, known := e.seen.Nodes[dead]
	switch {
	case !known:
		return Recovery{}, fmt.Errorf("there is no node %s", dead)
	case e.seen.alive(dead):
		return Recovery{}, fmt.Errorf("%s is alive: its ranges can be moved, not recovered", dead)
	case e.seen.Logs[n.Log].Retired:
		return Recovery{}, fmt.Errorf("%s was recovered before", dead)
	}
	e.need(keyAlive(dead))
	if err := e.needAlive(heirs); err != nil {
		return Recovery{}, err
	}
	r := Recovery{Node: dead, Log: n.Log}
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
		if mig.Stage.Ended() || mig.Source != r.Node && mig.Target != r.Node {
			continue
		}
		if mig.Stage == Wanted || mig.Stage == Copying {
			err = e.end(mig, Failed, fmt.Sprintf("%s died before anything had changed hands", r.Node))
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
