package admin

import (
	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/nic"
)

// Replica is what a replica of a group counts.
type Replica struct {
	group.Health
	Control group.ServerMetrics
}

var fabricMetrics = []metric[fabric.Metrics]{
	counter("fabric_operations", "Requests executed.", func(m *fabric.Metrics) int64 { return int64(m.Operations) }),
	counter("fabric_bytes", "Bytes placed by them.", func(m *fabric.Metrics) int64 { return int64(m.Bytes) }),
	counter("fabric_messages", "Messages received.", func(m *fabric.Metrics) int64 { return int64(m.Messages) }),
	counter("fabric_rnr_waits", "Messages that found no receiver ready at first.", func(m *fabric.Metrics) int64 { return int64(m.RNRWaits) }),
	counter("fabric_broken", "Connections that failed.", func(m *fabric.Metrics) int64 { return int64(m.Broken) }),
	counter("fabric_refused_key", "Requests refused: unknown or revoked key.", func(m *fabric.Metrics) int64 { return int64(m.RefusedKey) }),
	counter("fabric_refused_bounds", "Requests refused: outside of the region.", func(m *fabric.Metrics) int64 { return int64(m.RefusedBounds) }),
	counter("fabric_refused_right", "Requests refused: the region does not allow it.", func(m *fabric.Metrics) int64 { return int64(m.RefusedRight) }),
	counter("fabric_refused_request", "Requests refused: they make no sense.", func(m *fabric.Metrics) int64 { return int64(m.RefusedRequest) }),
	counter("fabric_refused_local", "Own requests refused: they name memory that they may not use.", func(m *fabric.Metrics) int64 { return int64(m.RefusedLocal) }),
	counter("fabric_refused_peer", "Connections refused: banned or unexpected peer.", func(m *fabric.Metrics) int64 { return int64(m.RefusedPeer) }),
	counter("fabric_faults", "Memory that failed under a request.", func(m *fabric.Metrics) int64 { return int64(m.Faults) }),
	counter("fabric_malformed", "Frames that no NIC sends.", func(m *fabric.Metrics) int64 { return int64(m.Malformed) }),
	counter("fabric_unauthorized", "Peers without the secret.", func(m *fabric.Metrics) int64 { return int64(m.Unauthorized) }),
}

var nicMetrics = []metric[nic.Totals]{
	gauge("nic_devices", "Programs attached now.", func(m *nic.Totals) int64 { return int64(m.Devices) }),
	gauge("nic_streams", "Connections with other machines.", func(m *nic.Totals) int64 { return int64(m.Streams) }),
}

var replicaMetrics = []metric[Replica]{
	gauge("replica_memory_bytes", "Memory that the replica lends.", func(m *Replica) int64 { return int64(m.Bytes) }),
	gauge("replica_member", "1 while it is in a group.", func(m *Replica) int64 { return one(m.Member) }),
	counter("replica_offers", "Offers made to clients.", func(m *Replica) int64 { return int64(m.Offers) }),
	counter("replica_joins", "Groups that it was in.", func(m *Replica) int64 { return int64(m.Joins) }),
	counter("replica_groups_ended", "Groups that ended without its doing.", func(m *Replica) int64 { return int64(m.Ended) }),
	counter("replica_refused", "Offers, joins and messages refused.", func(m *Replica) int64 { return int64(m.Refused) }),
	counter("replica_control_calls", "Requests of clients.", func(m *Replica) int64 { return int64(m.Control.Calls) }),
	counter("replica_control_refused", "Of them, those that were not granted.", func(m *Replica) int64 { return int64(m.Control.Refused) }),
	counter("replica_control_malformed", "Clients that did not speak the control protocol.", func(m *Replica) int64 { return int64(m.Control.Malformed) }),
	counter("replica_control_unauthorized", "Clients without the secret.", func(m *Replica) int64 { return int64(m.Control.Unauthorized) }),
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
