package redis

import (
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// Routing is who serves which key, from one node's point of view. It never
// changes: a change of anything makes a new one.
//
// The state of a whole slot is one byte, so that a key costs one look-up. Only slots
// whose places are not all in the same state need the exact ranges.
type Routing struct {
	self   view.NodeID
	places view.Map
	nodes  map[view.NodeID]Node
	change RoutingState

	slots [record.PlaceSlots]slotState
}

// RoutingState is what is under way on top of the map.
type RoutingState struct {
	// Epoch grows with every change: the revision of the metadata, say. CLUSTER NODES and INFO show it.
	Epoch uint64
	// Recovering is what the map gives to this node and what it does not have yet.
	// Commands on it wait.
	Recovering view.Ranges
	// Exporting ranges are this node's in the map; keys that are gone already are asked
	// for at the other node (ASK).
	Exporting []Migration
	// Importing ranges are another node's in the map; clients that it sends
	// here (ASKING) are served.
	Importing []Migration
}

// slotState is what a node does with commands on a slot.
type slotState uint8

const (
	slotElsewhere  slotState = iota // another node's: MOVED
	slotMine                        // served
	slotRecovering                  // this node's, not there yet: commands wait
	slotExporting                   // served if the key is still here, else ASK
	slotImporting                   // served to ASKING, else MOVED
	slotNobody                      // CLUSTERDOWN: nobody owns it
	slotCut                         // several of these: look at the place
)

// NewRouting shows a map to the clients of node self. nodes are all that are
// known, dead or alive; the order does not matter.
func NewRouting(self view.NodeID, m view.Map, nodes []Node, state RoutingState) *Routing {
	r := &Routing{self: self, places: m, nodes: make(map[view.NodeID]Node, len(nodes)), change: state}
	for _, n := range nodes {
		r.nodes[n.ID] = n
	}
	return r
}

// Epoch is that of the RoutingState it was made with.
func (r *Routing) Epoch() uint64 { return r.change.Epoch }
