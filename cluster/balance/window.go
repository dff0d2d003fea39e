package balance

import "github.com/ostrodb/ostro/cluster/view"

// window is neighbouring slots of one node.
type window struct {
	first, last int
	sum         float64
}

func (w window) slots() int { return w.last - w.first + 1 }

func (w window) ranges() view.Ranges {
	return view.RangesOf(view.SlotsRange(uint16(w.first), uint16(w.last)))
}

// near is how much of the best fit is as good as the best, if it takes fewer slots.
const near = 0.95

// fit finds neighbouring slots of n that weigh as much as can be but not more than
// most, and of those that weigh nearly as much the fewest. False: each one weighs more, or nothing.
func (n *node) fit(most float64) (best window, ok bool) {
	heaviest := 0.0
	n.windows(func(w window) bool { return w.sum > most }, func(w window) {
		heaviest = max(heaviest, w.sum)
	})
	least := near * heaviest
	n.windows(func(w window) bool { return w.sum-n.weight[w.first] >= least }, func(w window) {
		if w.sum >= least && w.sum <= most && (!ok || w.slots() < best.slots()) {
			best, ok = w, true
		}
	})
	return best, ok && best.sum > 0
}

// windows shows for every slot the neighbours that end with it, cut off at their beginning for
// as long as shorter says so.
func (n *node) windows(shorter func(window) bool, show func(window)) {
	w := window{}
	for slot := range Slots {
		if !n.owned[slot] {
			w = window{first: slot + 1}
			continue
		}
		w.last, w.sum = slot, w.sum+n.weight[slot]
		for w.first <= slot && shorter(w) {
			w.sum -= n.weight[w.first]
			w.first++
		}
		if w.first > slot {
			w.sum = 0
			continue
		}
		show(w)
	}
}

// lightest is the slot of n that weighs least of those that weigh anything.
func (n *node) lightest() (window, bool) {
	var best window
	for slot := range Slots {
		if w := n.weight[slot]; n.owned[slot] && w > 0 && (best.sum == 0 || w < best.sum) {
			best = window{slot, slot, w}
		}
	}
	return best, best.sum > 0
}
