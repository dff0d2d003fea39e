package redis

import (
	"slices"

	"github.com/ostrodb/ostro/wire/resp"
)

// Transactions of a proxy's clients. Commands are queued here; EXEC sends all of
// them to the owner of their slot at once, as MULTI ... EXEC, so that no other client's
// commands come in between. WATCH needs a link of its own, for what is watched belongs
// to the connection: the client is pinned to it until EXEC, DISCARD or UNWATCH.

const errWatchAgain = "TRYAGAIN The node of the watched key has changed or does not answer: WATCH again"

const errConnectionInExec = "EXECABORT AUTH, HELLO and CLIENT cannot stand in a transaction on keys of another node: send them before MULTI"

// aboutConnection tells whether a queued command would change the connection that it comes over, which at
// another node is one of many clients.
func (m *multiState) aboutConnection() bool {
	return slices.ContainsFunc(m.queue, func(q queued) bool {
		return q.cmd.flags&flagNoAuth != 0 || q.cmd.name == "client"
	})
}

// proxyWatch handles a WATCH that concerns another node.
func (l *loop) proxyWatch(c *conn, args [][]byte, rt route) bool {
	elsewhere := rt.ruling == moved
	switch {
	case rt.ruling == await || rt.ruling == refuse || !elsewhere && c.pin == nil:
		return false // as anywhere else
	case rt.ruling == ask:
		l.refuse(c, commandWatch, errTryAgain)
		return true
	case !elsewhere, len(c.multi.watch) > 0, c.pin != nil && (c.pinSlot != rt.slot || c.pin.to.ID != rt.to):
		l.refuse(c, commandWatch, errCrossSlot)
		return true
	}
	n, ok := l.routing.node(rt.to)
	if !ok || !n.Alive {
		l.refuse(c, commandWatch, errWatchAgain)
		return true
	}
	if c.pin == nil {
		c.pin, c.pinSlot = l.openLink(n, c.identity(), c.out.Proto()), rt.slot
	}
	p := &parcel{place: rt.place, body: resp.AppendCommand(nil, args...), replies: 1}
	l.tally.ran(commandWatch)
	l.depart(&hop{c: c, watch: true, parts: []*parcel{p}})
	return true
}

// proxyExec handles an EXEC that concerns another node.
func (l *loop) proxyExec(c *conn, rt route) bool {
	m := &c.multi
	elsewhere := rt.ruling == moved || rt.ruling == ask
	switch {
	case !m.active || m.dirty || rt.ruling == refuse || !elsewhere && c.pin == nil:
		return false // as anywhere else
	case c.resume.exec.next > 0:
		return false // A part has run here: it must not run again there.
	case rt.ruling == await:
		return false
	case len(m.watch) > 0, c.pin != nil && rt.slot >= 0 && rt.slot != c.pinSlot:
		l.refuse(c, commandExec, errCrossSlot)
		return true
	case m.aboutConnection():
		l.refuse(c, commandExec, errConnectionInExec)
		return true
	case c.pin != nil && (c.pin.isOver() || rt.slot >= 0 && rt.to != c.pin.to.ID):
		c.endMulti() // Nobody knows any more whether what was watched has changed.
		c.out.NullArray()
		return true
	}
	l.forwardExec(c, rt)
	return true
}

// forwardExec sends the whole transaction.
func (l *loop) forwardExec(c *conn, rt route) {
	p := &parcel{place: rt.place, body: resp.AppendCommand(nil, "multi"), replies: len(c.multi.queue) + 2}
	h := &hop{c: c, parts: []*parcel{p}, pin: c.pin}
	for _, q := range c.multi.queue {
		p.body = resp.AppendCommand(p.body, q.args...)
		h.write = h.write || q.cmd.flags&flagWrite != 0
	}
	p.body = resp.AppendCommand(p.body, "exec")
	if rt.ruling == ask {
		p.node, p.asking = rt.to, true
	}
	c.pin = nil // the hop's from here on
	c.endMulti()
	l.tally.ran(commandExec)
	l.depart(h)
}

// arrivePinned takes the answer of a WATCH, or of an EXEC after one, which can
// be sent to no other node.
func (l *loop) arrivePinned(p *parcel) {
	h := p.hop
	redirected := p.fate == answered && (p.moved || sendsAway(p.reply))
	switch {
	case h.watch && (p.fate != answered || redirected):
		h.c.unwatch()
		p.reply = []byte("-" + errWatchAgain + "\r\n")
	case p.fate == lost && h.write:
		l.srv.totals.forwardsLost.Add(1)
		l.close(h.c)
		h.pin.close()
		return
	case p.fate != answered || redirected:
		var null resp.Writer
		null.SetProto(h.c.out.Proto())
		null.NullArray()
		p.reply = null.Bytes()
	}
	l.partDone(p)
}

// unpin gives up the link of its own that a client had for WATCH.
func (c *conn) unpin() {
	if c.pin != nil {
		c.pin.close()
		c.pin = nil
	}
}
