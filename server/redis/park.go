package redis

import "github.com/ostrodb/ostro/engine/store"

// park is a group of connections that wait for one fetch of cold keys. Each
// keeps its input from the waiting command on and starts it again when the
// fetch is there. Connections of other commands go on.
type park struct {
	fetch *store.Fetch
	conns []*conn
}

// parkAt puts the input of c from pos on aside and stops c until p is there.
func (l *loop) parkAt(p *park, c *conn, pos int) {
	l.setInput(c, c.net.window[pos:])
	c.net.parked = true
	p.conns = append(p.conns, c)
}

// parkCommand parks the one connection whose command was cold.
func (l *loop) parkCommand(c *conn, pos int) {
	p := &park{}
	l.parkAt(p, c, pos)
	l.addPark(p)
}

// addPark takes what the session missed since the last call. The fetch starts
// when the round is over.
func (l *loop) addPark(p *park) {
	p.fetch = l.sess.TakeFetch()
	l.parks = append(l.parks, p)
}

// startParked starts the fetches of this round.
func (l *loop) startParked() {
	for i, p := range l.parks {
		l.parks[i] = nil
		l.fetching++
		p.fetch.Patience(l.srv.cfg.ClusterWait) // As the gate has.
		p.fetch.Start(func() { l.post(message{fetched: p}) })
	}
	l.parks = l.parks[:0]
}

// goOnParked lets the connections go on whose fetches have arrived: their
// commands run again, with the fetched records at hand. They may meet another
// cold key and park again.
func (l *loop) goOnParked() {
	if len(l.arrived) == 0 {
		return
	}
	l.begin()
	for i, p := range l.arrived {
		l.arrived[i] = nil
		l.fetching--
		l.goOnWith(p)
		l.resumed = append(l.resumed, p)
	}
	l.arrived = l.arrived[:0]
	l.sess.Resume(nil)
}

func (l *loop) goOnWith(p *park) {
	err := p.fetch.Err()
	l.sess.Resume(p.fetch)
	for _, c := range p.conns {
		if c.net.closed {
			continue
		}
		c.net.failure = err
		l.unpark(c)
		if !c.net.paused {
			c.net.more = false
			l.execute(c, c.net.in, true)
		}
	}
	l.flushBatch() // while the records are at hand
}

// unpark lets a connection go on with the input that was put aside.
func (l *loop) unpark(c *conn) {
	c.net.parked = false
	c.proceed()
	l.continueLater(c)
	if !c.net.eof && !c.net.paused {
		l.watch(c, c.net.interest|readable)
	}
}

// releaseResumed gives back what was fetched for commands that have run now.
func (l *loop) releaseResumed() {
	for i, p := range l.resumed {
		l.resumed[i] = nil
		p.fetch.Release()
	}
	l.resumed = l.resumed[:0]
}

// abandonParked waits for fetches whose connections are gone, so that none
// arrives after the session's end.
func (l *loop) abandonParked() {
	l.sess.GiveUp() // What waits for room, or for what is to arrive, might do so for ever.
	for l.fetching > 0 {
		l.poller.wait(-1)
		l.poller.drained()
		l.takeInbox()
		for _, p := range l.arrived {
			l.fetching--
			p.fetch.Release()
		}
		l.arrived = nil
	}
	for _, m := range l.inbox.shut() {
		if m.adopt != nil {
			l.discard(m.adopt)
		}
	}
}
