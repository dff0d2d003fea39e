package fabric

// Metrics counts what happened at one device. The Refused counters belong to the
// device whose memory was protected.
type Metrics struct {
	Operations uint64 // requests executed here as initiator
	Bytes      uint64 // payload placed by them
	Messages   uint64 // RECVs completed
	RNRWaits   uint64 // SENDs that found no RECV at first
	Broken     uint64 // connections that failed

	RefusedKey     uint64 // unknown or revoked key, or one of another domain
	RefusedBounds  uint64 // outside of the region
	RefusedRight   uint64 // the region's access does not allow it
	RefusedRequest uint64 // makes no sense
	RefusedLocal   uint64 // a request of this device named local memory it may not use
	RefusedPeer    uint64 // connection of a banned or unexpected peer
	Faults         uint64 // memory that failed under an operation

	Malformed    uint64 // frames that no NIC sends (whole NIC)
	Unauthorized uint64 // peers without the secret (whole NIC)
}

// Add counts what another device counted, too.
func (m *Metrics) Add(o Metrics) {
	m.Operations += o.Operations
	m.Bytes += o.Bytes
	m.Messages += o.Messages
	m.RNRWaits += o.RNRWaits
	m.Broken += o.Broken
	m.RefusedKey += o.RefusedKey
	m.RefusedBounds += o.RefusedBounds
	m.RefusedRight += o.RefusedRight
	m.RefusedRequest += o.RefusedRequest
	m.RefusedLocal += o.RefusedLocal
	m.RefusedPeer += o.RefusedPeer
	m.Faults += o.Faults
	m.Malformed += o.Malformed
	m.Unauthorized += o.Unauthorized
}

// Refused is the sum of all refusals.
func (m Metrics) Refused() uint64 {
	return m.RefusedKey + m.RefusedBounds + m.RefusedRight + m.RefusedRequest + m.RefusedLocal + m.RefusedPeer
}
