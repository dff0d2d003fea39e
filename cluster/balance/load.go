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
	// Bytes is what its records take. It is taken to be spread evenly over what the node owns.
	Bytes float64
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

	slotBytes float64 // of one of its slots
}

// ledger is all nodes while a plan is made.
type ledger struct {
	nodes   []*node
	total   float64
	trigger float64 // from which ratio on something moves
	unit    string  // of weights
	links   []Link
}

func newLedger(m view.Map, loads []Load, weigh func(*Load, []bool) []float64) *ledger {
	l := &ledger{}
	for i := range loads {
		n := &node{id: loads[i].Node, full: loads[i].Full, owned: owned(m.Ranges(loads[i].Node)), hot: loads[i].Hot}
		n.slotBytes = loads[i].Bytes / max(1, float64(n.slots()))
		n.weight = weigh(&loads[i], n.owned)
		for _, w := range n.weight {
			n.sum += w
		}
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

// slots is how many a node has as a whole.
func (n *node) slots() (count int) {
	for _, is := range n.owned {
		if is {
			count++
		}
	}
	return count
}

// byOps weighs slots by what is done in them.
func byOps(load *Load, _ []bool) []float64 {
	weight := make([]float64, Slots)
	copy(weight, load.Ops)
	return weight
}

// byBytes weighs all slots alike: together they are what the node has.
func byBytes(load *Load, owned []bool) []float64 {
	count := 0
	for _, is := range owned {
		if is {
			count++
		}
	}
	weight := make([]float64, Slots)
	for slot, is := range owned {
		if is {
			weight[slot] = load.Bytes / float64(count)
		}
	}
	return weight
}

func (l *ledger) average() float64 { return l.total / float64(len(l.nodes)) }

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
	}
	from.sum -= w.sum
	to.sum += w.sum
}

// Sum is operations a second in all slots.
func (l *Load) Sum() (sum float64) {
	for _, ops := range l.Ops {
		sum += ops
	}
	return sum
}
