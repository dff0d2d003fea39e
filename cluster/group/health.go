package group

import "github.com/ostrodb/ostro/fabric"

// Health is how a replica is.
type Health struct {
	Name     string // of its device
	Bytes    uint64 // of its memory
	Member   bool   // it is in a group
	Mode     Mode   `json:",omitempty"` // of the group
	Index    int    `json:",omitempty"` // its place in it
	Replicas int    `json:",omitempty"`
	ReplicaMetrics
	Fabric fabric.Metrics // of its device
}

// ReplicaMetrics counts what happened to a replica.
type ReplicaMetrics struct {
	Offers  uint64 // made
	Joins   uint64 // groups that it was in
	Ended   uint64 // groups that ended otherwise than by Leave
	Refused uint64 // offers and joins that were not granted, and messages that make no sense
}

// Health tells how the replica is. A NIC that does not answer leaves the fabric's numbers zero.
func (r *Replica) Health() Health {
	r.mu.Lock()
	h := Health{Name: r.dev.Name(), Bytes: uint64(len(r.mem.Bytes())), ReplicaMetrics: r.count}
	if p := r.part; p != nil && p.busy() {
		h.Member, h.Mode, h.Index, h.Replicas = true, p.spec.Mode, p.index, p.spec.Replicas
	}
	r.mu.Unlock()
	h.Ended, h.Refused = r.ended.Load(), h.Refused+r.nonsense.Load()
	h.Fabric, _ = r.dev.Metrics()
	return h
}
