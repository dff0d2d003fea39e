package redis

import (
	"slices"
	"sort"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// Routing is who serves which key, from one node's point of view. It never
// changes: a change of anything makes a new one.
//
// The state of a whole slot is one byte, so that a key costs one look-up. Only slots
// whose places are not all in one state need the exact parts.
type Routing struct {
	slots [record.PlaceSlots]slotState
	parts []part // the whole space, in order

	self   view.NodeID
	places view.Map
	nodes  map[view.NodeID]Node
	shown  []view.Slots // places, as clients want it
	change RoutingState

	waiting bool // some part is slotRecovering
}

// RoutingState is what is under way on top of the map.
type RoutingState struct {
	// Epoch grows with every change: the revision of the metadata, say. CLUSTER
	// NODES and CLUSTER INFO show it.
	Epoch uint64
	// Copies is how many backups have every write that is acknowledged here: what WAIT
	// answers.
	Copies int
	// Recovering is what the map gives to this node and what it does not have
	// whole yet. Commands on it wait.
	Recovering view.Ranges
	// Expected is what is on its way to this node or from it while nodes do not all know so: the map
	// gives it to another, who may still name this one. Commands on it wait, too, instead of going back and forth.
	Expected view.Ranges
	// Sample, if not nil, notes keys that commands use.
	Samples store.Samples
	// Exporting ranges are this node's in the map; keys that have gone already are
	// to be asked for at the other node (ASK).
	Exporting []Migration
	// Importing ranges are another node's in the map; clients that it sends
	// here (ASKING) are served.
	Importing []Migration
}

// slotState is what a node does with commands on a slot, or on a part of one.
type slotState uint8

const (
	slotElsewhere  slotState = iota // another node's: MOVED
	slotMine                        // served
	slotRecovering                  // being recovered here, or changing hands: commands wait
	slotExporting                   // served if the key is still here, else ASK
	slotImporting                   // served to ASKING, else MOVED
	slotNobody                      // CLUSTERDOWN
	slotCut                         // several of these: look at the place
)

// part is consecutive places that a node treats alike.
type part struct {
	view.Range
	state slotState
	other view.NodeID // whom to name: the owner, or where an export goes
}

// NewRouting shows a map to the clients of node self. nodes are all that are
// known, dead or alive, in any order.
func NewRouting(self view.NodeID, m view.Map, nodes []Node, state RoutingState) *Routing {
	r := &Routing{self: self, places: m, nodes: make(map[view.NodeID]Node, len(nodes)), shown: m.Slots(), change: state}
	for _, n := range nodes {
		r.nodes[n.ID] = n
	}
	r.divide()
	r.fillSlots()
	return r
}

// divide finds the parts: between two borders of whatever there is, nothing changes.
func (r *Routing) divide() {
	borders := []record.Place{0}
	add := func(ranges ...view.Range) {
		for _, g := range ranges {
			borders = append(borders, g.First)
			if g.Last != view.Whole.Last {
				borders = append(borders, g.Last+1)
			}
		}
	}
	for _, s := range r.places.Spans() {
		add(s.Range)
	}
	add(r.change.Recovering...)
	add(r.change.Expected...)
	for _, m := range slices.Concat(r.change.Exporting, r.change.Importing) {
		add(m.Ranges...)
	}
	slices.Sort(borders)
	borders = slices.Compact(borders)
	for i, first := range borders {
		last := view.Whole.Last
		if i+1 < len(borders) {
			last = borders[i+1] - 1
		}
		r.parts = append(r.parts, r.classify(view.Range{First: first, Last: last}))
	}
}

// classify tells what to do with a range in which everything is alike.
func (r *Routing) classify(g view.Range) part {
	owner, known := r.places.Owner(g.First)
	in := func(ms []Migration) (view.NodeID, bool) {
		for _, m := range ms {
			if m.Ranges.Contains(g.First) {
				return m.Node, true
			}
		}
		return "", false
	}
	switch {
	case !known:
		return part{g, slotNobody, ""}
	case owner != r.self:
		if r.change.Expected.Contains(g.First) {
			return part{g, slotRecovering, owner}
		}
		if _, importing := in(r.change.Importing); importing {
			return part{g, slotImporting, owner}
		}
		return part{g, slotElsewhere, owner}
	case r.change.Recovering.Contains(g.First):
		return part{g, slotRecovering, owner}
	}
	if to, exporting := in(r.change.Exporting); exporting {
		return part{g, slotExporting, to}
	}
	return part{g, slotMine, owner}
}

func (r *Routing) fillSlots() {
	for _, p := range r.parts {
		r.waiting = r.waiting || p.state == slotRecovering
		first, last := p.First.Slot(), p.Last.Slot()
		for slot := int(first); slot <= int(last); slot++ {
			r.slots[slot] = p.state
		}
		if view.SlotsRange(first, first).First < p.First {
			r.slots[first] = slotCut
		}
		if p.Last < view.SlotsRange(last, last).Last {
			r.slots[last] = slotCut
		}
	}
}

// Epoch is that of the RoutingState it was made with.
func (r *Routing) Epoch() uint64 { return r.change.Epoch }

// Serves tells whether a place is served here and now, whoever asks.
func (r *Routing) Serves(p record.Place) bool {
	state := r.slots[p.Slot()]
	return state == slotMine || state == slotCut && r.part(p).state == slotMine
}

// holds tells whether keys at a place count as this node's own.
func (r *Routing) holds(p record.Place) bool {
	state := r.part(p).state
	return state == slotMine || state == slotExporting
}

// holdsAll tells whether keys at all places of a range count as this node's own.
func (r *Routing) holdsAll(g view.Range) bool {
	for {
		p := r.part(g.First)
		if p.state != slotMine && p.state != slotExporting {
			return false
		}
		if p.Last >= g.Last {
			return true
		}
		g.First = p.Last + 1
	}
}

// part is the part that a place lies in.
func (r *Routing) part(p record.Place) *part {
	return &r.parts[sort.Search(len(r.parts), func(i int) bool { return r.parts[i].Last >= p })]
}
