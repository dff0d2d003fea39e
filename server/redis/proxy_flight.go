package redis

import (
	"bytes"
	"cmp"
	"slices"
)

const (
	flightMostHops  = 1024    // commands of one client that are under way
	flightMostBytes = 4 << 20 // and their bytes
	retryMillis     = 50      // between two tries when nothing is heard
)

// flight is the commands of a client that other nodes execute, and the replies
// of what ran here behind them: replies leave in the order of the commands.
//
// Invariants:
//   - While there is a flight, nothing is appended to the connection's replies but
//     by land; what runs here is tucked behind the hops before it.
//   - All hops of a flight were sent by one routing. So two commands on one key
//     went to one node, over one link, in their order, or the second waits.
//   - Nothing follows a part that goes to this node itself, over a link like any other,
//     nor one that has a link of its own, nor a flush, before it has landed. A WATCH, whose link is its own, follows nothing.
type flight struct {
	hops    []*hop
	bytes   int
	routing *Routing
	waiting int  // parts that wait to be sent again
	alone   bool // nothing may follow
	blocked bool // the client's input waits for it
	counted bool // the client's tenant was told that it waits
}

// hop is one command of a flight.
type hop struct {
	c     *conn
	write bool      // it must not be executed twice
	parts []*parcel // what was made of it, in order
	left  int       // parts without an answer
	bytes int
	join  func(replies [][]byte) []byte // makes one answer of the parts'; nil: there is one part
	until int64                         // how long it may try again; 0: it has not failed yet
	mute  bool                          // the client wants no reply
	ready bool
	reply []byte
	pin   *link // its own link; closed when it has landed
	watch bool  // it is a WATCH
	flush *flushing

	number  int64 // in the loop's order
	waiting int   // parts that wait to be sent again
	pass    int64 // of the loop's, in which it was sent again
}

// mustLand tells whether a command has to wait until those before it are back.
func (l *loop) mustLand(c *conn, cmd *command) bool {
	f := &c.flight
	return f.routing != l.routing || f.alone || c.pin != nil || len(f.hops) >= flightMostHops || f.bytes >= flightMostBytes ||
		cmd != nil && cmd.flags&flagNoAuth != 0 || // it may change how the connection talks
		cmd == commandWatch // it goes over a link of its own, and would overtake what the client wrote before
}

// blockOnFlight puts the input of c from pos on aside until its flight allows more.
func (l *loop) blockOnFlight(c *conn, pos int) {
	l.setInput(c, c.net.window[pos:])
	c.net.parked = true
	c.flight.blocked = true
}

// depart adds a hop to its client's flight and sends its parts. Behind one that has
// to be sent again it waits for its turn.
func (l *loop) depart(h *hop) {
	c := h.c
	f := &c.flight
	c.dropTask() // A call that ran here while its keys left has applied nothing.
	c.resume = resumption{}
	if refusal := c.mayFly(); refusal != "" {
		l.ground(h, refusal)
		return
	}
	if !c.net.flying {
		c.net.flying = true
		f.routing = l.routing
	}
	l.departed++
	l.srv.totals.forwarded.Add(1)
	h.number, h.mute, h.left = l.departed, c.reply != replyOn, len(h.parts)
	for _, p := range h.parts {
		p.hop = h
		h.bytes += len(p.body)
	}
	waits := f.waiting > 0
	f.alone = f.alone || h.flush != nil // A later round of it would take what follows, too.
	f.hops = append(f.hops, h)
	f.bytes += h.bytes
	for _, p := range h.parts {
		if waits {
			l.tryLater(p)
		} else {
			l.dispatch(p)
		}
	}
}

// dispatch sends a parcel to whom it belongs as far as this node knows.
func (l *loop) dispatch(p *parcel) {
	h := p.hop
	f := &h.c.flight
	if h.watch || h.pin != nil {
		f.alone = true
		if k := h.ownLink(); k == nil || !k.send(p) {
			p.fate = unsent
			l.arrive(p)
		}
		return
	}
	node := p.node
	if node == "" {
		node = l.routing.ownerOf(p.place)
	}
	n, ok := l.routing.node(node)
	if !ok || !n.Alive { // Without a lease it answers nothing; it may even hang.
		l.tryLater(p)
		return
	}
	f.alone = f.alone || node == l.routing.self
	k, again := l.link(n, h.c)
	// A link that has just ended may bring back commands that come before this one.
	if again && f.hops[0] != h && h.until == 0 || !k.send(p) {
		l.tryLater(p)
	}
}

// ownLink is the link of a hop that may use no other.
func (h *hop) ownLink() *link {
	if h.watch {
		return h.c.pin
	}
	return h.pin
}

// arrive takes a parcel that came back.
func (l *loop) arrive(p *parcel) {
	h := p.hop
	switch {
	case h.c.net.closed || h.ready:
		if h.pin != nil {
			h.pin.close()
		}
	case h.pin != nil || h.watch:
		l.arrivePinned(p)
	case p.fate == lost && h.write:
		l.srv.totals.forwardsLost.Add(1)
		l.srv.log.Info("closing a client whose write was forwarded to a node that did not answer: nobody knows whether it was executed", "client", h.c.addr, "id", h.c.id)
		l.close(h.c)
	case p.fate == answered && isError(p.reply, "ASK") && l.follow(p):
	case p.fate != answered || p.moved || sendsAway(p.reply):
		l.tryLater(p)
	default:
		l.partDone(p)
	}
}

// follow sends a parcel where an ASK said; false if it said nothing useful.
func (l *loop) follow(p *parcel) bool {
	fields := bytes.Fields(p.reply)
	for _, n := range l.srv.cfg.Cluster.Routing().nodes {
		if to := n.endpoint(false); len(fields) == 3 && to != "" && string(fields[2]) == to {
			p.asking = true
			k, _ := l.link(n, p.hop.c)
			return k.send(p)
		}
	}
	return false
}

// tryLater keeps a parcel until the routing changes or a while has passed. What
// has tried for too long is answered with the last word.
func (l *loop) tryLater(p *parcel) {
	h := p.hop
	if p.asking {
		p.asking, p.node = false, ""
	}
	if h.until == 0 {
		h.until = l.now + l.srv.cfg.ClusterWait.Milliseconds()
	}
	if l.now >= h.until || l.stop {
		if p.fate != answered || !sendsAway(p.reply) || isError(p.reply, "MOVED") {
			p.reply = []byte("-" + errGaveUp + "\r\n")
		}
		l.partDone(p)
		return
	}
	h.waiting++
	h.c.flight.waiting++
	l.retries = append(l.retries, p)
	l.retryAt = min(l.retryAt, l.now+retryMillis)
}

// tryAgain sends everything once more that waits for it, each client's commands
// in their order: none while an earlier one is still out.
func (l *loop) tryAgain() {
	retries := l.retries
	l.retries, l.retryAt = nil, never
	l.begin() // takes the newest routing
	l.pass++
	slices.SortStableFunc(retries, func(a, b *parcel) int { return cmp.Compare(a.hop.number, b.hop.number) })
	for _, p := range retries {
		h := p.hop
		h.waiting--
		h.c.flight.waiting--
		switch {
		case h.c.net.closed:
		case l.now >= h.until || l.stop || l.behind(h):
			l.tryLater(p)
		default:
			h.pass = l.pass
			l.dispatch(p)
		}
	}
}

// behind tells whether an earlier hop of the same client is out, and was not
// sent right before, in which case the link keeps the order.
func (l *loop) behind(h *hop) bool {
	for _, earlier := range h.c.flight.hops {
		if earlier == h {
			return false
		}
		if !earlier.ready && earlier.left > earlier.waiting && earlier.pass != l.pass {
			return true
		}
	}
	return false
}

// partDone notes an answer, and the hop's if it was the last part.
func (l *loop) partDone(p *parcel) {
	h := p.hop
	if h.left--; h.left > 0 {
		return
	}
	if h.reply = h.answer(); l.nextRound(h) {
		return
	}
	h.parts = nil
	l.finishHop(h)
}

func (h *hop) answer() []byte {
	if h.join == nil {
		return h.parts[0].reply
	}
	replies := make([][]byte, len(h.parts))
	for i, p := range h.parts {
		if replies[i] = p.reply; isAnyError(p.reply) {
			return p.reply
		}
	}
	return h.join(replies)
}

func isAnyError(reply []byte) bool { return len(reply) == 0 || reply[0] == '-' }

func (l *loop) finishHop(h *hop) {
	h.ready = true
	if h.pin != nil {
		h.pin.close()
	}
	l.land(h.c)
}

// land appends the replies of all hops that are back to the connection's, as far
// as none before them is missing.
func (l *loop) land(c *conn) {
	f := &c.flight
	if len(f.hops) == 0 || !f.hops[0].ready {
		return
	}
	l.begin()
	l.enqueue(c)
	c.net.sure = unsure
	if c.out.Cap() == 0 {
		c.out.Swap(l.pool.get())
	}
	for len(f.hops) > 0 && f.hops[0].ready {
		h := f.hops[0]
		f.hops[0] = nil
		f.hops = f.hops[1:]
		f.bytes -= h.bytes
		if !h.mute {
			c.out.Raw(h.reply)
		}
	}
	if len(f.hops) == 0 {
		c.landed()
		c.flight = flight{blocked: f.blocked}
		c.net.flying = false
	}
	if f.blocked && (!c.net.flying || len(f.hops) < flightMostHops/2 && !l.mustLand(c, nil)) {
		f.blocked = false
		l.unpark(c)
	}
}

// tuck takes what was just answered behind a flight into it.
func (l *loop) tuck(c *conn, start int) {
	if c.out.Len() == start {
		return
	}
	h := &hop{c: c, ready: true, reply: bytes.Clone(c.out.Bytes()[start:])}
	h.bytes = len(h.reply)
	c.out.Truncate(start)
	c.flight.hops = append(c.flight.hops, h)
	c.flight.bytes += h.bytes
}
