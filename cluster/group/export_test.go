package group

import (
	"time"

	"github.com/ostrodb/ostro/fabric"
)

// Message is what a client sends for a gWRITE, for tests that then change it.
func Message(s Spec, o Offer, answers fabric.Region, off uint64, data []byte) []byte {
	l := &line{client: &client{spec: s, offers: []Offer{o}, reg: answers}}
	to := make([]byte, s.stageBytes())
	op := &operation{kind: gWrite, off: off, n: uint64(len(data)), data: data}
	if s.Mode == Chain {
		return to[:l.describe(to, 0, op)]
	}
	return to[:s.encode(to, 0, op)]
}

// HeldUp makes the client's last sign of life older, as for a replica's program that was stopped.
func (r *Replica) HeldUp(d time.Duration) { r.part.heard.Add(-int64(d)) }
