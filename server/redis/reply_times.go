package redis

import (
	"math/bits"
	"time"
)

// ReplyTimes counts how long clients' commands took here: from when they were read until
// their replies were handed to the socket, with all the waiting for disk, for copies or for a range
// that was between. What a client sent at one go counts once.
//
// Buckets are four to an octave, from a microsecond on: a quantile is off by a fifth at most.
type ReplyTimes struct {
	Counts [ReplyBuckets]int64
	Nanos  int64 // their sum
}

const (
	replyOctaves  = 25                 // up to half a minute
	replyQuarters = 4                  // buckets to an octave
	replyFloor    = 10                 // bits of what the first bucket ends with
	ReplyBuckets  = replyOctaves*4 + 1 // The first is all below the floor, the last all above.
)

// replyBucket is which bucket a time belongs to.
func replyBucket(nanos int64) int {
	high := bits.Len64(uint64(max(nanos, 0))) - 1
	if high < replyFloor {
		return 0
	}
	quarter := int(nanos>>(high-2)) & (replyQuarters - 1)
	return min((high-replyFloor)*replyQuarters+quarter+1, ReplyBuckets-1)
}

// ReplyBound is where bucket i ends; the last has no end and this is where it begins.
func ReplyBound(i int) time.Duration {
	octave, quarter := (max(i, 1)-1)/replyQuarters, (max(i, 1)-1)%replyQuarters
	if i == 0 || i == ReplyBuckets-1 {
		quarter-- // where it begins
	}
	return time.Duration(replyQuarters+quarter+1) << (octave + replyFloor - 2)
}

func (t *ReplyTimes) add(nanos, n int64) {
	t.Counts[replyBucket(nanos)] += n
	t.Nanos += nanos * n
}

func (t *ReplyTimes) merge(o *ReplyTimes) {
	for i, n := range o.Counts {
		t.Counts[i] += n
	}
	t.Nanos += o.Nanos
}

// asked notes when the commands of c that are not answered yet were read.
func (l *loop) asked(c *conn) {
	if c.net.asked == 0 {
		c.net.asked = l.load.mark
	}
}

// answered counts replies of c that leave in this round. Most were asked for in the same
// round, and take as long as it does: see tally.publish.
func (l *loop) answered(c *conn) {
	at := c.net.asked
	switch {
	case at == 0 || c.net.parked || c.net.flying:
		return // Nothing was asked, or not all is answered.
	case at == l.load.mark:
		l.tally.prompt++
	default:
		l.tally.late = append(l.tally.late, l.load.clock()-at)
	}
	c.net.asked = 0
}

// released counts replies that were held since they were asked for at a time.
func (l *loop) released(at int64) {
	if at != 0 {
		l.tally.late = append(l.tally.late, l.load.clock()-at)
	}
}
