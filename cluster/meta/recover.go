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
		if old := e.seen.leaving(m.To).Intersect(m.Ranges); len(old) > 0 {
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
		switch {
		case mig.Stage.Ended(), mig.Source != r.Node && mig.Target != r.Node:
			continue
		case mig.Stage == Wanted:
			err = e.end(mig, Failed, fmt.Sprintf("%s died before it began", r.Node))
		case mig.Stage == Moving && mig.Source == r.Node:
			r.Parts = append(r.Parts, Part{Heir: mig.Target, Ranges: mig.Ranges})
			err = e.end(mig, Done, fmt.Sprintf("%s died: %s replays its log", mig.Source, mig.Target))
		case mig.Stage == Moving:
			move := view.Move{Ranges: mig.Ranges, From: mig.Target, To: mig.Source}
			r.Parts = append(r.Parts, Part{Heir: mig.Source, Ranges: mig.Ranges})
			moves = append(moves, move)
			if m, err = m.Apply(move); err == nil {
				err = e.end(mig, Failed, fmt.Sprintf("%s died: %s replays its log", mig.Target, mig.Source))
			}
		case mig.Target == r.Node: // Returning
			err = e.endReturn(r, mig)
		}
		if err != nil {
			return m, nil, err
		}
	}
	return m, moves, nil
}

// endReturn makes what is left of a return a part of the recovery of its log.
func (e *edit) endReturn(r *Recovery, m Migration) error {
	for _, p := range e.seen.Returns[m.ID].Parts {
		if !p.Done {
			r.Parts = append(r.Parts, p)
		}
	}
	e.delete(keyReturn(m.ID))
	return e.end(m, Cancelled, fmt.Sprintf("%s died as it returned what it had: others replay its log", m.Target))
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
