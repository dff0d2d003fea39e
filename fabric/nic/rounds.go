package nic

import (
	"fmt"
	"math"

	"github.com/ostrodb/ostro/fabric"
)

// A queue that repeats has requests 0 to n-1, posted before Connect, and goes round
// them for ever: number i is request i modulo n.
//
// Invariant: a request does not start again before its last life has ended, so
// no more than n are in flight.

// closeRounds ends what can be posted to a queue pair that repeats.
func (q *qp) closeRounds() error {
	if !q.repeats {
		return nil
	}
	sends, recvs := q.shared.Send.Tail(), q.shared.Recv.Tail()
	if sends > q.shared.Send.Depth() || recvs > q.shared.Recv.Depth() {
		return fmt.Errorf("nic: queue pair %d says that it has %d and %d requests, more than it has slots", q.number, sends, recvs)
	}
	if q.sends, q.recvs = sends, recvs; sends > 0 {
		q.tail = math.MaxUint64
	}
	return nil
}

// sendSlot and recvSlot are where request i lies.
func (q *qp) sendSlot(i uint64) uint64 {
	if q.sends > 0 {
		return i % q.sends
	}
	return i
}

func (q *qp) recvSlot(i uint64) uint64 {
	if q.recvs > 0 {
		return i % q.recvs
	}
	return i
}

// renew makes the request just fetched ready for the next round.
func (q *qp) renew(slot uint64) {
	if q.cur.Op == fabric.OpWait {
		q.cur.A += q.next / q.sends * q.cur.B
	}
	if q.cur.Returns {
		q.shared.Send.TakeBack(slot)
	}
}

// endRounds lets the round that a failed queue pair is in be its last.
func (q *qp) endRounds() {
	if q.sends > 0 {
		q.lastSend = (q.next/q.sends + 1) * q.sends
	}
	if q.recvs > 0 {
		q.lastRecv = (q.recvHead/q.recvs + 1) * q.recvs
	}
}

// sendEnd and recvEnd are where a failed queue ends.
func (q *qp) sendEnd() uint64 {
	if q.sends > 0 {
		return q.lastSend
	}
	return q.shared.Send.Tail()
}

func (q *qp) recvEnd() uint64 {
	if q.recvs > 0 {
		return q.lastRecv
	}
	return q.shared.Recv.Tail()
}
