package redis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ostrodb/ostro/cluster/view"
)

// Mover is a Cluster that moves slots between nodes when clients ask for it in Redis' words
// (CLUSTER SETSLOT, MIGRATE). Its method returns at once, from any goroutine.
type Mover interface {
	// MoveSlot sees to it that a slot goes to a node, with all its keys, and calls done once.
	// If wait, that is when the node owns the slot by this node's routing; else it may be as soon
	// as the wish is noted, so that many slots can go together.
	MoveSlot(slot uint16, to view.NodeID, wait bool, done func(error))
}

// slotMarks are slots that a client has announced to move, as Redis' tools do before they move
// keys. Here a slot moves whole; the marks only tell whose MIGRATE is meant, and are shown
// while they are true. They are nobody's but this process'.
type slotMarks struct {
	mu        sync.Mutex
	migrating map[uint16]view.NodeID // to whom
	importing map[uint16]view.NodeID // from whom
}

func (m *slotMarks) set(migrating bool, slot uint16, n view.NodeID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := &m.importing
	if migrating {
		of = &m.migrating
	}
	if *of == nil {
		*of = map[uint16]view.NodeID{}
	}
	(*of)[slot] = n
}

// clear forgets what was announced of a slot.
func (m *slotMarks) clear(slot uint16) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.migrating, slot)
	delete(m.importing, slot)
}

// migratingTo is to whom a slot was announced to go; "" if it was not.
func (m *slotMarks) migratingTo(slot uint16) view.NodeID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.migrating[slot]
}

// show adds marks to a line of CLUSTER NODES, as far as the slots have not moved yet.
func (m *slotMarks) show(text *strings.Builder, r *Routing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := func(marks map[uint16]view.NodeID, arrow string, mine bool) {
		for _, slot := range slices.Sorted(maps.Keys(marks)) {
			if r.ownsSlot(slot, r.self) == mine {
				fmt.Fprintf(text, " [%d%s%s]", slot, arrow, redisID(marks[slot]))
			}
		}
	}
	one(m.migrating, "->-", true)
	one(m.importing, "-<-", false)
}

// ownsSlot tells whether a slot is a node's, whole.
func (r *Routing) ownsSlot(slot uint16, n view.NodeID) bool {
	g := view.SlotsRange(slot, slot)
	for at := g.First; ; {
		p := r.part(at)
		owner, known := r.places.Owner(at)
		if !known || owner != n {
			return false
		}
		if p.Last >= g.Last {
			return true
		}
		at = p.Last + 1
	}
}
