package redis

import (
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/wire/resp"
)

const errGaveUp = "CLUSTERDOWN Hash slot not served: the node that owns it does not answer"

// A proxy serves clients that know one server only: what they ask of others'
// keys is forwarded to the owners (proxy_flight.go) over connections that are
// shared (proxy_link.go) and marked, so that nothing is forwarded twice.
//
// A command whose keys lie in one slot goes to its owner whole. A few commands are
// divided by key, and those on a whole database go to every node; see proxy_join.go.
// What a tenant asks for is asked as that tenant; see proxy_tenant.go.

// proxies handles a command for c if it concerns other nodes. handled is false if the
// command is to be treated as anywhere else; if it is true, pass tells whether
// the command may run here.
func (l *loop) proxies(c *conn, cmd *command, args [][]byte, rt route, queued bool) (pass, handled bool) {
	elsewhere := rt.ruling == moved || rt.ruling == ask
	switch {
	case !l.srv.cfg.Proxy || c.inner:
		return false, false
	case queued:
		return true, elsewhere // EXEC will see where it belongs
	case cmd == commandExec:
		return false, l.proxyExec(c, rt)
	case cmd == commandWatch && c.multi.active:
		return true, true // its handler says that it may not
	case cmd == commandWatch:
		return false, l.proxyWatch(c, args, rt)
	case elsewhere:
		l.forward(c, cmd, args, rt)
		return false, true
	case rt.ruling == refuse && rt.text == errCrossSlot && cmd.divides() && len(args)%cmd.step == 1%cmd.step:
		l.divide(c, cmd, args)
		return false, true
	case rt.whole:
		return false, l.spread(c, cmd, args)
	}
	return false, false
}

// forward sends a command to the one node that serves its keys.
func (l *loop) forward(c *conn, cmd *command, args [][]byte, rt route) {
	p := &parcel{place: rt.place, body: resp.AppendCommand(nil, args...), replies: 1}
	h := &hop{c: c, write: cmd.mayWrite(), parts: []*parcel{p}}
	if rt.ruling == ask {
		p.node, p.asking = rt.to, true
	}
	l.tally.ran(cmd)
	l.depart(h)
}

// ownerOf is whom a place belongs to, "" if to nobody.
func (r *Routing) ownerOf(p record.Place) view.NodeID {
	owner, _ := r.places.Owner(p)
	return owner
}
