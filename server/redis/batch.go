package redis

import (
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

const batchMax = 64

// batch collects plain GETs and SETs, of one connection or of many, so that
// the cache misses of all their keys overlap. They wait here for no longer than
// the round lasts. They run in the order in which they came, and a connection's
// other commands flush the batch first, hence every connection sees its own
// commands in order.
//
// Keys, values and positions refer to the connections' windows, which must
// not move before the flush.
type batch struct {
	n     int
	sets  int
	keys  [batchMax]store.Key
	views [batchMax]store.View
	st    [batchMax]store.Status
	ops   [batchMax]batchOp
}

type batchOp struct {
	c     *conn
	pos   int    // where the command stands in its connection's window
	value []byte // of a SET
	set   bool
}

// batchable reports whether a command may wait for its batch: GET, and SET
// without options, when nothing is special about the connection.
func (l *loop) batchable(c *conn, cmd *command, args [][]byte, size int) bool {
	if cmd == commandGet && len(args) == 2 || cmd == commandSet && len(args) == 3 && size <= timedBytes {
		return c.plain() && l.pause.until == 0 && !l.tally.timeAll && !c.net.bulky
	}
	return false
}

// enbatch adds a command that stands at pos of the connection's window. It
// returns false if the connection was parked.
func (l *loop) enbatch(c *conn, cmd *command, args [][]byte, pos, size int) bool {
	b := &l.batch
	l.sess.Name(&b.keys[b.n], c.db, args[1])
	if l.routing != nil {
		l.routing.change.Samples.Note(&b.keys[b.n])
		if !l.routing.Serves(b.keys[b.n].Place) || !l.lease.alive || c.asking || c.net.flying {
			return l.single(c, cmd, args, pos, size)
		}
		l.expose(c)
		if l.noting != nil {
			l.noting.Note(b.keys[b.n].Place)
		}
	}
	op := &b.ops[b.n]
	op.c, op.pos, op.set = c, pos, len(args) == 3
	if op.set {
		op.value = args[2]
		b.sets++
	}
	b.n++
	c.net.pending++
	l.last = cmd
	if b.n == batchMax {
		l.flushBatch()
		return !c.net.parked
	}
	return true
}

// flushBatch runs and answers all commands that wait. Connections with a cold
// key are parked from that command on, all of them until one fetch brings what
// all of them miss.
func (l *loop) flushBatch() {
	b := &l.batch
	n, onlyGets := b.n, b.sets == 0
	if n == 0 {
		return
	}
	b.n, b.sets = 0, 0
	if onlyGets {
		l.sess.GetBatch(b.keys[:n], b.views[:n], b.st[:n])
	} else if n > 1 {
		l.sess.Prefetch(b.keys[:n])
	}
	var p *park
	for i := range n {
		op := &b.ops[i]
		op.c.net.pending--
		if op.c.net.parked || op.c.net.closed {
			op.c.refund(1)
			continue // Behind a command that waits: it will be run again.
		}
		if op.c.unsent() > replySliceBytes {
			op.c.setAside()
			l.slice(op.c, op.pos)
			continue
		}
		if !onlyGets {
			b.run(l.sess, i)
		}
		if b.st[i] == store.Cold {
			if p == nil {
				p = &park{}
			}
			if refusal := op.c.mayWait(); refusal != "" {
				op.c.out.Error(refusal)
				continue
			}
			l.parkAt(p, op.c, op.pos)
			continue
		}
		l.answer(op, &b.views[i], b.st[i])
	}
	switch {
	case p == nil:
	case len(p.conns) > 0:
		l.addPark(p)
	default:
		l.sess.TakeFetch() // Nobody waits for it.
	}
}

// forget drops references to buffers.
func (b *batch) forget() {
	clear(b.keys[b.n:])
	clear(b.views[b.n:])
	clear(b.ops[b.n:])
}

// run executes one operation of a batch that is not of GETs alone.
func (b *batch) run(ss *store.Session, i int) {
	if op := &b.ops[i]; op.set {
		b.st[i] = ss.Put(&b.keys[i], store.Write{Value: op.value}, nil)
		return
	}
	b.st[i] = ss.Read(&b.keys[i], &b.views[i])
}

// answer writes the reply of one operation and counts it.
func (l *loop) answer(op *batchOp, v *store.View, st store.Status) {
	out, cmd, refusal := &op.c.out, commandGet, ""
	sure := !op.set && !v.Leans() && op.c.net.sure == op.c.replied()
	if op.set {
		cmd = commandSet
	}
	switch {
	case st == store.OK && op.set:
		out.OK()
	case st == store.OK && v.Kind == record.KindString:
		out.Bulk(v.Value)
		op.c.net.bulky = len(v.Value) > bulkyBytes
		l.oweReply(op.c, len(v.Value))
	case st == store.OK:
		refusal = errWrongType
	case st == store.NotFound:
		out.Null()
	case st == store.Refused:
		refusal = l.srv.refusal(l.sess.Err())
	default:
		refusal = l.srv.storeError(l.sess.Err())
	}
	l.tally.ran(cmd)
	if refusal != "" {
		out.Error(refusal)
		l.tally.failed(cmd, []byte(refusal))
	}
	if sure {
		op.c.net.sure = op.c.replied()
	}
}
