package balance

import (
	"cmp"
	"fmt"
	"slices"
)

// Link is two slots that requests use together: a native multi-get or multi-put, of which each node's part is one
// operation. Redis' commands and transactions stay within a slot, which is never cut.
type Link struct {
	A    uint16  `json:"a"`
	B    uint16  `json:"b"`
	Rate float64 `json:"rate"` // requests a second
}

// mostLinks is how many a node tells of, those that are used most.
const mostLinks = 128

// strongest are the links with the highest rates.
func strongest(all []Link) []Link {
	slices.SortFunc(all, func(a, b Link) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
	return all[:min(len(all), mostLinks)]
}

// links are those of all nodes.
func links(loads []Load) (all []Link) {
	for i := range loads {
		all = append(all, loads[i].Links...)
	}
	return all
}

func (w window) has(slot uint16) bool { return w.first <= int(slot) && int(slot) <= w.last }

// torn is how many requests a second become two if slots go from one node to another, less those that
// become one.
func (l *ledger) torn(from, to *node, w window) (rate float64) {
	for _, k := range l.links {
		if w.has(k.A) == w.has(k.B) {
			continue
		}
		stays := k.A
		if w.has(k.A) {
			stays = k.B
		}
		switch {
		case from.owned[stays]:
			rate += k.Rate
		case to.owned[stays]:
			rate -= k.Rate
		}
	}
	return rate
}

// company says what becomes of slots that are used together.
func (l *ledger) company(from, to *node, w window) string {
	switch t := l.torn(from, to, w); {
	case len(l.links) == 0:
		return ""
	case t > 0:
		return fmt.Sprintf("; %.0f requests a second on several slots are divided by it", t)
	case t < 0:
		return fmt.Sprintf("; %.0f requests a second on several slots are divided no more", -t)
	}
	return "; slots that are used together stay together"
}
