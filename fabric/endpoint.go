package fabric

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// NICID tells NICs apart; each takes a random one when it starts.
type NICID [16]byte

func (n NICID) String() string { return hex.EncodeToString(n[:]) }

// Endpoint names a queue pair to its peer. Programs pass it on as text.
type Endpoint struct {
	NIC   NICID
	QP    uint32
	Token uint64 // random: who has not been told the endpoint cannot connect
	Peer  string // the name of the device, for Ban
	Addr  string // host:port of the NIC; empty if it is reached on this machine only
}

// String gives nic.qp.token@addr/peer.
func (e Endpoint) String() string {
	return fmt.Sprintf("%s.%d.%016x@%s/%s", e.NIC, e.QP, e.Token, e.Addr, e.Peer)
}

// ParseEndpoint reads what String gave.
func ParseEndpoint(s string) (Endpoint, error) {
	var e Endpoint
	bad := fmt.Errorf("fabric: %q is no endpoint; want nic.qp.token@host:port/name", s)
	who, where, ok := strings.Cut(s, "@")
	if !ok {
		return e, bad
	}
	if e.Addr, e.Peer, ok = strings.Cut(where, "/"); !ok {
		return e, bad
	}
	parts := strings.Split(who, ".")
	if len(parts) != 3 || len(parts[0]) != 2*len(e.NIC) || len(parts[2]) != 16 {
		return e, bad
	}
	if _, err := hex.Decode(e.NIC[:], []byte(parts[0])); err != nil {
		return e, bad
	}
	n, err := strconv.ParseUint(parts[1], 10, 32)
	if err != nil {
		return e, bad
	}
	e.QP = uint32(n)
	if e.Token, err = strconv.ParseUint(parts[2], 16, 64); err != nil {
		return e, bad
	}
	return e, nil
}

// MarshalText is String.
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText is ParseEndpoint.
func (e *Endpoint) UnmarshalText(text []byte) (err error) {
	*e, err = ParseEndpoint(string(text))
	return err
}
