package redis

import (
	"strconv"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// ruling is what is to be done with a command.
type ruling uint8

const (
	serve  ruling = iota // run it here
	await                // its keys are not there yet
	moved                // another node serves it
	ask                  // another node serves it, this once
	refuse               // nobody can
)

// route is where a command belongs.
type route struct {
	ruling
	slot  int          // of its keys; -1: it has none
	place record.Place // of the first of them
	to    view.NodeID  // whom moved and ask mean
	text  string       // why it is refused
	whole bool         // it is about a database, not about keys
}

// Refusals of a cluster, in Redis' words where Redis has any.
const (
	errCrossSlot  = "CROSSSLOT Keys in request don't hash to the same slot"
	errCutSlot    = "CROSSSLOT Keys in request hash to one slot, but that is divided among nodes: use one key at a time"
	errTryAgain   = "TRYAGAIN Multiple keys request during rehashing of slot"
	errUnbound    = "CLUSTERDOWN Hash slot not served"
	errLeaseLost  = "CLUSTERDOWN The cluster is down: this node's lease has ended"
	errRecovering = "CLUSTERDOWN Hash slot not served: it is still being recovered here"
)

// routeSearch is a search for the route of one command, key by key.
type routeSearch struct {
	r       *Routing
	ss      *store.Session
	db      int
	asking  bool // the client was sent here
	keys    int
	present int // of exported and imported keys: how many are here
	missing int
	state   slotState
	route
}

// routeOf finds where a command belongs. EXEC is all that it will run.
func (l *loop) routeOf(c *conn, cmd *command, args [][]byte) route {
	s := routeSearch{r: l.routing, ss: l.sess, db: c.db, asking: c.asking, route: route{slot: -1}}
	switch {
	case cmd != commandExec:
		s.command(cmd, args)
	case c.multi.active && !c.multi.dirty:
		for _, q := range c.multi.queue {
			s.command(q.cmd, q.args)
		}
		s.watched(c.multi.watch)
	}
	return s.conclude()
}

func (s *routeSearch) command(cmd *command, args [][]byte) {
	if sub := cmd.subcommand(args); sub != nil {
		cmd = sub
	}
	if cmd.keys != nil {
		for _, key := range cmd.keys(args) {
			s.key(key)
		}
		return
	}
	if cmd.flags&flagMovableKeys != 0 {
		return // Its handler sees to its keys.
	}
	if cmd.first == 0 {
		s.whole = s.whole || cmd.onDatabase()
		return
	}
	last := cmd.last
	if last < 0 {
		last += len(args)
	}
	for i := cmd.first; i <= last && i < len(args); i += cmd.step {
		s.key(args[i])
	}
}

// key adds a key: all must lie in one slot and in one state.
func (s *routeSearch) key(key []byte) {
	if s.ruling == refuse {
		return
	}
	k := s.ss.Key(s.db, key)
	s.r.change.Samples.Note(&k)
	slot := int(k.Place.Slot())
	if s.keys > 0 && slot != s.slot {
		s.ruling, s.text = refuse, errCrossSlot
		return
	}
	state, to := s.r.slots[slot], s.r.self
	if state != slotMine {
		p := s.r.part(k.Place)
		state, to = p.state, p.other
	}
	switch {
	case s.keys == 0:
		s.slot, s.place, s.state, s.to = slot, k.Place, state, to
	case s.state == state && s.to == to:
	case s.state == slotMine && state == slotRecovering:
		s.state = state
	case s.state == slotRecovering && state == slotMine:
	default:
		s.ruling, s.text = refuse, errCutSlot
		return
	}
	s.keys++
	if state == slotExporting || state == slotImporting && s.asking {
		s.look(&k)
	}
}

// look sees whether a key on its way is here. A cold one is.
func (s *routeSearch) look(k *store.Key) {
	if _, st := s.ss.Get(k); st == store.NotFound {
		s.missing++
	} else {
		s.present++
	}
}

// watched adds keys whose change EXEC must notice: it cannot where they are
// not served any more.
func (s *routeSearch) watched(watch []watched) {
	for i := range watch {
		if s.ruling == refuse {
			return
		}
		p := s.r.part(s.ss.Key(watch[i].db, watch[i].key.Bytes).Place)
		switch p.state {
		case slotRecovering:
			s.whole = true // which waits
		case slotElsewhere, slotNobody:
			s.ruling, s.text = refuse, ""
		}
	}
}

// conclude rules on what the search has found.
func (s *routeSearch) conclude() route {
	switch {
	case s.ruling == refuse:
	case s.whole && s.r.waiting:
		s.ruling = await
	case s.keys == 0:
	case s.state == slotRecovering:
		s.ruling = await
	case s.state == slotElsewhere, s.state == slotImporting && !s.asking:
		s.ruling = moved
	case s.state == slotNobody:
		s.ruling, s.text = refuse, errUnbound
	case s.state == slotExporting && s.missing > 0 && s.present == 0:
		s.ruling = ask
	case s.state == slotExporting && s.missing > 0, s.state == slotImporting && s.missing > 0 && s.keys > 1:
		s.ruling, s.text = refuse, errTryAgain
	}
	return s.route
}

// redirection is the error that sends a client to another node.
func (r *Routing) redirection(rt route, tls bool) string {
	n, ok := r.node(rt.to)
	if !ok {
		return errUnbound + ": node " + string(rt.to) + " has no Redis port"
	}
	host, port := n.hostPort(tls)
	word := "MOVED "
	if rt.ruling == ask {
		word = "ASK "
	}
	return word + strconv.Itoa(rt.slot) + " " + host + ":" + strconv.Itoa(port)
}
