package balance

import (
	"fmt"
	"slices"

	"github.com/ostrodb/ostro/cluster/view"
)

// Plan is what should move, and why, for people to read.
type Plan struct {
	Moves []Move `json:"moves,omitempty"`
	// Fullest is the node that carries most: Ratio times the average, and Expected times
	// after the moves, if clients go on as they did.
	Fullest  view.NodeID `json:"fullest,omitempty"`
	Ratio    float64     `json:"ratio"`
	Expected float64     `json:"expected"`
	Why      string      `json:"why"`
	// Held is why there is no further move though one would help; empty if none would.
	Held Held `json:"held,omitempty"`

	still bool // it is of bytes, for there is little load
}

// Move is ranges that should go from one node to another.
type Move struct {
	From   view.NodeID `json:"from"`
	To     view.NodeID `json:"to"`
	Ranges view.Ranges `json:"ranges"`
	Share  float64     `json:"share"` // of the fuller node's load, 0 to 1
	Bytes  float64     `json:"bytes"` // about how many they are
	Why    string      `json:"why"`
}

// Make makes a plan, however little there is to gain. Loads are those of all living nodes.
func Make(m view.Map, loads []Load, p Policy, spent Spent) Plan {
	p = p.WithDefaults()
	if len(loads) < 2 {
		return Plan{Why: "there is one node: nothing can move"}
	}
	l := measure(m, loads, p)
	if l == nil {
		return Plan{Ratio: 1, Expected: 1, Why: idle(loads, p)}
	}
	n, ratio := l.fullest()
	plan := Plan{Fullest: n.id, Ratio: ratio, Expected: ratio, still: l.unit == unitBytes}
	if ratio <= l.trigger {
		plan.Why = fmt.Sprintf("%s carries most: %.2f times the average of %s, and up to %.2f is left alone", n.id, ratio, l.unit, l.trigger)
		return plan
	}
	stuck := ""
	for len(plan.Moves) < p.Moves && plan.Held == "" {
		from, now := l.fullest()
		if now <= p.Goal {
			break
		}
		plan.Held, stuck = l.step(&plan, from, p, &spent)
	}
	_, plan.Expected = l.fullest()
	plan.Why = fmt.Sprintf("%s carries %.2f times the average of %s", n.id, ratio, l.unit)
	if len(plan.Moves) > 0 {
		plan.Why += fmt.Sprintf("; after the moves the fullest node should carry %.2f times", plan.Expected)
	}
	if stuck != "" {
		plan.Why += "; " + stuck
	}
	return plan
}

// idle says why there is nothing to compare.
func idle(loads []Load, p Policy) string {
	text := fmt.Sprintf("the cluster is idle: no node carries %.0f operations a second, and ", p.MinOps)
	if settling(loads) {
		return text + "cold records still follow to where their ranges are: bytes are compared when they have"
	}
	return text + "none is large"
}

// settling tells whether bytes will lie elsewhere soon.
func settling(loads []Load) bool {
	return slices.ContainsFunc(loads, func(l Load) bool { return l.Settling })
}

// measure weighs by load, or by bytes if there is little and they are at rest; nil if there is nothing to weigh.
func measure(m view.Map, loads []Load, p Policy) *ledger {
	l := newLedger(m, loads, byOps)
	if n, _ := l.fullest(); n.sum >= p.MinOps {
		l.trigger, l.unit = p.Trigger, "operations"
		l.links = links(loads)
		return l
	}
	if settling(loads) {
		return nil
	}
	l = newLedger(m, loads, byBytes)
	if n, _ := l.fullest(); n.sum >= p.SmallBytes {
		l.trigger, l.unit = p.SpaceTrigger, unitBytes
		return l
	}
	return nil
}

const unitBytes = "bytes"

// step plans one move from a node to the emptiest, or says why there is none.
func (l *ledger) step(plan *Plan, from *node, p Policy, spent *Spent) (Held, string) {
	to := l.emptiest()
	if to == nil || to == from {
		return HeldTarget, "no other node may take more"
	}
	want := min(from.sum-l.average(), l.average()-to.sum)
	if want <= 0 {
		return HeldTarget, "no node that may take more carries less than the average"
	}
	w, ok := l.fit(from, to, want)
	if !ok {
		if w, ok = from.lightest(); !ok || to.sum+w.sum >= from.sum || w.sum >= from.sum {
			return HeldUndividable, from.undividable(l.unit)
		}
	}
	bytes := total(from.bytes[w.first : w.last+1])
	if why := p.over(*spent, bytes); why != "" {
		return HeldBudget, why
	}
	spent.Bytes, spent.Moves = spent.Bytes+bytes, spent.Moves+1
	share := w.sum / from.sum
	plan.Moves = append(plan.Moves, Move{
		From: from.id, To: to.id, Ranges: w.ranges(), Share: share, Bytes: bytes,
		Why: fmt.Sprintf("%d slots with %.0f%% of the %s of %s, which has %.2f times the average, go to %s, which has %.2f times%s",
			w.slots(), 100*share, l.unit, from.id, from.sum/l.average(), to.id, to.sum/l.average(), l.company(from, to, w)),
	})
	l.move(from, to, w)
	return "", ""
}

// over says why a move is more than the budget allows now.
func (p Policy) over(spent Spent, bytes float64) string {
	const gib = 1 << 30
	switch {
	case bytes > p.HourBytes:
		return fmt.Sprintf("a move of about %.2f GiB is held back: it is more than the budget of a whole hour, %.2f GiB", bytes/gib, p.HourBytes/gib)
	case spent.Bytes+bytes > p.HourBytes:
		return fmt.Sprintf("a move of about %.2f GiB is held back: %.2f of %.2f GiB of this hour's budget are spent", bytes/gib, spent.Bytes/gib, p.HourBytes/gib)
	case spent.Moves >= p.HourMoves:
		return fmt.Sprintf("further moves are held back: there were %d within the hour, and no more than %d may be", spent.Moves, p.HourMoves)
	}
	return ""
}

// undividable says where the load of a node lies that no move can make less.
func (n *node) undividable(unit string) string {
	heaviest, slot := 0.0, 0
	for i, w := range n.weight {
		if n.owned[i] && w > heaviest {
			heaviest, slot = w, i
		}
	}
	text := fmt.Sprintf("no slot of %s is light enough to help: slot %d alone has %.0f%% of its %s", n.id, slot, 100*heaviest/n.sum, unit)
	if n.hot.Share > hotShare && int(n.hot.Slot) == slot {
		return text + fmt.Sprintf(", a single key %.0f%%, and a key cannot be divided", 100*n.hot.Share)
	}
	return text + ", and what is in one slot, such as keys with the same {tag} or a single key, cannot be divided"
}

// hotShare is how much of a node's load a key must have to be named.
const hotShare = 0.3
