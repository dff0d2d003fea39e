package balance

import (
	"fmt"

	"github.com/ostrodb/ostro/cluster/view"
)

// Policy is how even a cluster shall be.
type Policy struct {
	// Trigger is how many times the average the fullest node must carry before
	// anything moves; 1.25 if zero.
	Trigger float64
	// Goal is what a plan brings it down to, if it can; 1.1 if zero.
	Goal float64
	// Samples is how many in a row must show it; 3 if zero.
	Samples int
	// Moves is how many a plan has at most; 4 if zero.
	Moves int
	// IdleOps is how many operations a second of all nodes are as good as none: then
	// bytes are balanced instead; 500 if zero.
	IdleOps float64
	// SmallBytes is what is not worth moving for the sake of space; 1 GiB on the
	// fullest node if zero.
	SmallBytes float64
	// SpaceTrigger is Trigger for bytes: 1.5 if zero.
	SpaceTrigger float64
}

// WithDefaults fills in what is zero.
func (p Policy) WithDefaults() Policy {
	for _, d := range []struct {
		p *float64
		v float64
	}{{&p.Trigger, 1.25}, {&p.Goal, 1.1}, {&p.IdleOps, 500}, {&p.SmallBytes, 1 << 30}, {&p.SpaceTrigger, 1.5}} {
		if *d.p == 0 {
			*d.p = d.v
		}
	}
	if p.Samples == 0 {
		p.Samples = 3
	}
	if p.Moves == 0 {
		p.Moves = 4
	}
	return p
}

// Plan is what should move, and why, for people to read.
type Plan struct {
	Moves []Move `json:"moves,omitempty"`
	// Fullest is the node that carries most: Ratio times the average, and Expected times
	// after the moves, if clients go on as they did.
	Fullest  view.NodeID `json:"fullest,omitempty"`
	Ratio    float64     `json:"ratio"`
	Expected float64     `json:"expected"`
	Why      string      `json:"why"`
}

// Move is ranges that should go from one node to another.
type Move struct {
	From   view.NodeID `json:"from"`
	To     view.NodeID `json:"to"`
	Ranges view.Ranges `json:"ranges"`
	Share  float64     `json:"share"` // of the fuller node's load, 0 to 1
	Why    string      `json:"why"`
}

// Make makes a plan, however little there is to gain. Loads are those of all living nodes.
func Make(m view.Map, loads []Load, p Policy) Plan {
	p = p.WithDefaults()
	if len(loads) < 2 {
		return Plan{Why: "there is one node: nothing can move"}
	}
	l, trigger, unit := measure(m, loads, p)
	if l == nil {
		return Plan{Ratio: 1, Expected: 1, Why: "the cluster is idle, and no node is large"}
	}
	n, ratio := l.fullest()
	plan := Plan{Fullest: n.id, Ratio: ratio, Expected: ratio}
	if ratio <= trigger {
		plan.Why = fmt.Sprintf("%s carries most: %.2f times the average of %s, and up to %.2f is left alone", n.id, ratio, unit, trigger)
		return plan
	}
	stuck := ""
	for len(plan.Moves) < p.Moves && stuck == "" {
		from, now := l.fullest()
		if now <= p.Goal {
			break
		}
		stuck = l.step(&plan, from, unit)
	}
	_, plan.Expected = l.fullest()
	plan.Why = fmt.Sprintf("%s carries %.2f times the average of %s; after the moves the fullest node should carry %.2f times", n.id, ratio, unit, plan.Expected)
	if stuck != "" {
		plan.Why += "; " + stuck
	}
	return plan
}

// measure weighs by load, or by bytes if there is none; nil if there is nothing to weigh.
func measure(m view.Map, loads []Load, p Policy) (*ledger, float64, string) {
	if l := newLedger(m, loads, byOps); l.total >= p.IdleOps {
		return l, p.Trigger, "operations"
	}
	if l := newLedger(m, loads, byBytes); l.total > 0 {
		if n, _ := l.fullest(); n.sum >= p.SmallBytes {
			return l, p.SpaceTrigger, "bytes"
		}
	}
	return nil, 0, ""
}

// step plans one move from a node to the emptiest, or says why there is none.
func (l *ledger) step(plan *Plan, from *node, unit string) (stuck string) {
	to := l.emptiest()
	if to == nil || to == from {
		return "no other node may take more"
	}
	want := min(from.sum-l.average(), l.average()-to.sum)
	w, ok := from.fit(want)
	if !ok {
		if w, ok = from.lightest(); !ok || to.sum+w.sum >= from.sum || w.sum >= from.sum {
			return fmt.Sprintf("no slot of %s is light enough to help: a key that is used this much cannot be divided", from.id)
		}
	}
	share := w.sum / from.sum
	plan.Moves = append(plan.Moves, Move{
		From: from.id, To: to.id, Ranges: w.ranges(), Share: share,
		Why: fmt.Sprintf("%d slots with %.0f%% of the %s of %s, which has %.2f times the average, go to %s, which has %.2f times",
			w.slots(), 100*share, unit, from.id, from.sum/l.average(), to.id, to.sum/l.average()),
	})
	l.move(from, to, w)
	return ""
}
