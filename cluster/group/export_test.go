package group

import "github.com/ostrodb/ostro/fabric"

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
