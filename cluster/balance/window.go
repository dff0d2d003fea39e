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

// nearLinked is the same where slots are used together: what is torn apart costs, too.
const nearLinked = 0.7

// fit finds neighbouring slots of n, for another node, that weigh as much as can be but not more than
// most. Of those that weigh nearly as much it takes those that tear the least apart that is used together,
// and of these the fewest. False: each one weighs more, or nothing.
func (l *ledger) fit(n, to *node, most float64) (best window, ok bool) {
	heaviest, near, torn := 0.0, near, 0.0
	if len(l.links) > 0 {
		near = nearLinked
	}
	n.windows(func(w window) bool { return w.sum > most }, func(w window) {
		heaviest = max(heaviest, w.sum)
	})
	least := near * heaviest
	n.windows(func(w window) bool { return w.sum-n.weight[w.first] >= least }, func(w window) {
		if w.sum < least || w.sum > most {
			return
		}
		if t := l.torn(n, to, w); !ok || t < torn || t == torn && w.slots() < best.slots() {
			best, torn, ok = w, t, true
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
