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
		p.fetch.Start(func() { l.post(message{fetched: p}) })
	}
	l.parks = l.parks[:0]
}

// fetched lets the connections of p go on: their commands run again in this
// round, and the fetched records are at hand until it ends.
func (l *loop) fetched(p *park) {
	l.fetching--
	err := p.fetch.Err()
	if err == nil {
		l.sess.Resume(p.fetch)
	}
	for _, c := range p.conns {
		if c.net.closed {
			continue
		}
		c.net.failure = err
		l.unpark(c)
	}
	l.resumed = append(l.resumed, p)
}

// unpark lets a connection go on with the input that was put aside.
func (l *loop) unpark(c *conn) {
	c.net.parked = false
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
	for l.fetching > 0 {
		l.poller.wait(-1)
		l.poller.drained()
		l.takeInbox()
		l.releaseResumed()
	}
	for _, m := range l.inbox.shut() {
		if m.adopt != nil {
			l.discard(m.adopt)
		}
	}
}
