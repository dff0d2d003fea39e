package view

import (
	"cmp"
	"slices"
)

// Slots is consecutive Redis Cluster slots with the same owner, or one slot that is cut.
type Slots struct {
	First, Last uint16
	// Owners has one node if it owns these slots whole. A slot that is cut
	// stands alone, with all who own a part of it, the largest part first: the
	// first is whom to name to a client that knows slots only.
	Owners []NodeID
}

// Whole tells whether one node owns all of it.
func (s Slots) Whole() bool { return len(s.Owners) == 1 }

// Slots shows the map as Redis Cluster clients want it: every slot exactly
// once, in order. It takes a step for every range and every slot that is cut.
func (m Map) Slots() []Slots {
	var out []Slots
	var parts []Span // of the slot at hand
	for _, s := range m.spans {
		for _, r := range s.Range.slotRuns() {
			parts = append(parts, Span{r, s.Owner})
			if r.Last == slotEnd(r.Last) {
				out = showSlots(out, parts)
				parts = parts[:0]
			}
		}
	}
	return out
}

// showSlots adds a slot, given by its parts, or whole slots of one owner to those before.
func showSlots(out []Slots, parts []Span) []Slots {
	first, last, owners := parts[0].Range.First.Slot(), parts[len(parts)-1].Range.Last.Slot(), ownersByShare(parts)
	if n := len(out); n > 0 && len(owners) == 1 && slices.Equal(out[n-1].Owners, owners) {
		out[n-1].Last = last
		return out
	}
	return append(out, Slots{first, last, owners})
}

func ownersByShare(parts []Span) []NodeID {
	if len(parts) == 1 {
		return []NodeID{parts[0].Owner}
	}
	share := map[NodeID]float64{}
	var owners []NodeID
	for _, p := range parts {
		if share[p.Owner] == 0 {
			owners = append(owners, p.Owner)
		}
		share[p.Owner] += p.Range.Fraction()
	}
	slices.SortStableFunc(owners, func(a, b NodeID) int { return cmp.Compare(share[b], share[a]) })
	return owners
}
