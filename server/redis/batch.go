package redis

import (
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

const batchMax = 64

// batch collects GETs, of one connection or of many, so that one call looks
// them all up and their cache misses overlap. GETs wait here for no longer
// than the round lasts; a connection's other commands flush the batch first,
// hence every connection sees its own commands in order.
//
// Keys and positions refer to the connections' windows, which must not move
// before the flush.
type batch struct {
	n     int
	keys  [batchMax]store.Key
	views [batchMax]store.View
	st    [batchMax]store.Status
	conns [batchMax]*conn
	pos   [batchMax]int
}

// batchGet adds a GET that stands at pos of the connection's window. It
// returns false if the connection was parked.
func (l *loop) batchGet(c *conn, pos int, key []byte) bool {
	b := &l.batch
	b.keys[b.n] = l.sess.Key(c.db, key)
	b.conns[b.n] = c
	b.pos[b.n] = pos
	b.n++
	c.net.pending++
	l.last = commandGet
	if b.n == batchMax {
		l.flushBatch()
		return !c.net.parked
	}
	return true
}

// flushBatch looks up and answers all GETs that wait. Connections with a cold
// key are parked from that GET on, all of them until one fetch brings what
// all of them miss.
func (l *loop) flushBatch() {
	b := &l.batch
	n := b.n
	if n == 0 {
		return
	}
	b.n = 0
	l.sess.GetBatch(b.keys[:n], b.views[:n], b.st[:n])
	var p *park
	ran := 0
	for i := range n {
		c := b.conns[i]
		c.net.pending--
		switch {
		case c.net.parked || c.net.closed:
			// Behind a cold key: it will be run again.
		case b.st[i] == store.Cold:
			if p == nil {
				p = &park{}
			}
			l.parkAt(p, c, b.pos[i])
		default:
			l.answerGet(c, &b.views[i], b.st[i])
			ran++
		}
	}
	l.tally.ranMany(commandGet, ran)
	if p != nil {
		l.addPark(p)
	}
}

func (l *loop) answerGet(c *conn, v *store.View, st store.Status) {
	switch {
	case st == store.OK && v.Kind == record.KindString:
		c.out.Bulk(v.Value)
	case st == store.OK:
		c.out.Error(errWrongType)
		l.tally.failed(commandGet, []byte(errWrongType))
	case st == store.NotFound:
		c.out.Null()
	default:
		start := c.out.Len()
		c.out.Error("ERR " + l.sess.Err().Error())
		l.tally.failed(commandGet, c.out.Bytes()[start+1:])
	}
}
