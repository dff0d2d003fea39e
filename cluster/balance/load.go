package balance

import (
	"cmp"
	"slices"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// Slots is in how many parts load is watched.
const Slots = record.PlaceSlots

// Load is what a node carries.
type Load struct {
	Node view.NodeID
	// Ops is operations a second by slot; nil is none.
	Ops []float64
	// Bytes is what its records take.
	Bytes float64
	// Sizes is how Bytes are spread over slots, in any unit, as some records that were drawn show it; nil: evenly over what the
	// node owns.
	Sizes []float64
	// Links are slots that requests use together.
	Links []Link
	// Hot is the key that has most of the load, if one stands out.
	Hot Hot
	// Full says that nothing may move to the node: it is being drained, say.
	Full bool
	// Settling says that cold records still follow to the node or from it: its Bytes are not what they will be.
	Settling bool
}

// node is a node while a plan is made.
type node struct {
	id     view.NodeID
	full   bool
	owned  []bool    // by slot; those that are cut are not
	weight []float64 // by slot, those that are cut included
	sum    float64
	hot    Hot
	bytes  []float64 // by slot
}

// ledger is all nodes while a plan is made.
type ledger struct {
	nodes   []*node
	total   float64
	trigger float64 // from which ratio on something moves
	unit    string  // of weights
	links   []Link
}

func newLedger(m view.Map, loads []Load, weigh func(*Load, *node) []float64) *ledger {
	l := &ledger{}
	for i := range loads {
		n := &node{id: loads[i].Node, full: loads[i].Full, owned: owned(m.Ranges(loads[i].Node)), hot: loads[i].Hot}
		n.bytes = n.spread(&loads[i])
		n.weight = weigh(&loads[i], n)
		n.sum = total(n.weight)
		l.nodes = append(l.nodes, n)
		l.total += n.sum
	}
	return l
}

// owned are the slots that lie in ranges as a whole.
func owned(ranges view.Ranges) []bool {
	whole := make([]bool, Slots)
	for _, r := range ranges {
		for slot := int(r.First.Slot()); slot <= int(r.Last.Slot()); slot++ {
			s := view.SlotsRange(uint16(slot), uint16(slot))
			whole[slot] = r.First <= s.First && s.Last <= r.Last
		}
	}
	return whole
}

// spread is how many bytes are about in each slot.
func (n *node) spread(load *Load) []float64 {
	share := load.Sizes
	if total(share) == 0 {
		share = make([]float64, Slots)
		for slot, is := range n.owned {
			if is {
				share[slot] = 1
			}
		}
	}
	bytes := make([]float64, Slots)
	if sum := total(share); sum > 0 {
		for slot, s := range share {
			bytes[slot] = load.Bytes * s / sum
		}
	}
	return bytes
}

func total(vs []float64) (sum float64) {
	for _, v := range vs {
		sum += v
	}
	return sum
}

// byOps weighs slots by what is done in them.
func byOps(load *Load, _ *node) []float64 {
	weight := make([]float64, Slots)
	copy(weight, load.Ops)
	return weight
}

// byBytes weighs them by what is in them.
func byBytes(_ *Load, n *node) []float64 { return slices.Clone(n.bytes) }

// average is what each would carry if all that may carry more had the same. Nodes that may not, as one that is drained, count for what they
// carry only: else those that share everything evenly would carry more than the average for ever. Where there is one at the most that may,
// nothing can move, and all count.
func (l *ledger) average() float64 {
	n := 0
	for _, node := range l.nodes {
		n += b2i(!node.full)
	}
	if n < 2 {
		n = len(l.nodes)
	}
	return l.total / float64(n)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fullest is the node that carries most, and how many times the average that is.
func (l *ledger) fullest() (*node, float64) {
	most := slices.MaxFunc(l.nodes, func(a, b *node) int { return cmp.Compare(a.sum, b.sum) })
	return most, most.sum / l.average()
}

// emptiest is the node that carries least, of those that may carry more; nil if there is none.
func (l *ledger) emptiest() *node {
	var least *node
	for _, n := range l.nodes {
		if !n.full && (least == nil || n.sum < least.sum) {
			least = n
		}
	}
	return least
}

// move lets slots change hands.
func (l *ledger) move(from, to *node, w window) {
	for slot := w.first; slot <= w.last; slot++ {
		to.weight[slot], from.weight[slot] = from.weight[slot], 0
		to.owned[slot], from.owned[slot] = true, false
		to.bytes[slot], from.bytes[slot] = from.bytes[slot], 0
	}
	from.sum -= w.sum
	to.sum += w.sum
}

// Sum is operations a second in all slots.
func (l *Load) Sum() float64 { return total(l.Ops) }
