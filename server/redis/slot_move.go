package redis

import (
	"net"
	"strconv"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// moveSlot has a slot moved; the client waits for it without holding up others.
func (c *call) moveSlot(slot uint16, to view.NodeID, wait bool) verdict {
	mover, ok := c.srv.cfg.Cluster.(Mover)
	switch {
	case !ok:
		return c.fail("ERR slots cannot be moved here")
	case c.conn.multi.active:
		return c.fail("ERR slots are not moved inside a transaction: send the command by itself")
	}
	c.await(func(finished func(error)) { mover.MoveSlot(slot, to, wait, finished) })
	return later
}

// moved answers for a slot that a former run of the handler had moved. ok is false if there was none.
func (c *call) moved() (v verdict, ok bool) {
	if c.conn.resume.errand == nil {
		return done, false
	}
	over, err := c.await(nil)
	if !over {
		return later, true
	}
	return c.okUnless(err), true
}

// clusterSetslot is how Redis' own tools move slots. MIGRATING and IMPORTING announce a move, NODE
// has it done: not key by key, but as a live migration. So a client need not
// move keys itself, and one that tries it finds none to move (see clusterGetkeysinslot).
func clusterSetslot(c *call) verdict {
	if v, ok := c.moved(); ok {
		return v
	}
	slot, ok := c.slotArg(2)
	if !ok {
		return c.fail("ERR Invalid or out of range slot")
	}
	marks := &c.srv.books.slots
	if c.is(3, "stable") && len(c.args) == 4 {
		marks.clear(slot)
		return c.ok()
	}
	if len(c.args) != 5 || !c.is(3, "migrating") && !c.is(3, "importing") && !c.is(3, "node") {
		return c.fail("ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP")
	}
	n, known := c.routing.byRedisID(c.args[4])
	mine := c.routing.ownsSlot(slot, c.routing.self)
	switch {
	case !known:
		return c.fail("ERR I don't know about node " + shown(c.args[4]))
	case c.is(3, "node"):
		marks.clear(slot)
		if c.routing.ownsSlot(slot, n.ID) {
			return c.ok()
		}
		if !n.Alive {
			return c.fail("ERR " + string(n.ID) + " is not alive: choose a node that is")
		}
		return c.moveSlot(slot, n.ID, false)
	case c.is(3, "migrating") && !mine:
		return c.fail("ERR I'm not the owner of hash slot " + strconv.Itoa(int(slot)))
	case c.is(3, "importing") && mine:
		return c.fail("ERR I'm already the owner of hash slot " + strconv.Itoa(int(slot)))
	case n.ID == c.routing.self:
		return c.fail("ERR Target node is myself")
	}
	marks.set(c.is(3, "migrating"), slot, n.ID)
	return c.ok()
}

// migrateArgs is what a MIGRATE says.
type migrateArgs struct {
	host, port string
	keys       [][]byte
	db         int64
	refusal    string
}

// migrateArgs reads MIGRATE host port key|"" db timeout [REPLACE] [AUTH p] [AUTH2 u p] [KEYS k...].
func (c *call) migrateArgs() (m migrateArgs) {
	m.host, m.port = string(c.args[1]), string(c.args[2])
	db, isDB := parseInt(c.args[4])
	if _, isTime := parseInt(c.args[5]); !isDB || !isTime {
		m.refusal = "ERR value is not an integer or out of range"
		return m
	}
	m.db = db
	if len(c.args[3]) > 0 {
		m.keys = c.args[3:4]
	}
	for i := 6; i < len(c.args); i++ {
		switch {
		case c.is(i, "replace"):
		case c.is(i, "copy"):
			m.refusal = "ERR MIGRATE moves keys with their slot here: COPY is not supported"
		case c.is(i, "auth") && i+1 < len(c.args):
			i++
		case c.is(i, "auth2") && i+2 < len(c.args):
			i += 2
		case c.is(i, "keys") && len(m.keys) > 0:
			m.refusal = "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string"
			return m
		case c.is(i, "keys") && i+1 < len(c.args):
			m.keys = c.args[i+1:]
			return m
		default:
			m.refusal = errSyntax
			return m
		}
	}
	if len(m.keys) == 0 && m.refusal == "" {
		m.refusal = errSyntax
	}
	return m
}

// migrate moves the slot that its keys lie in to another node of the cluster, with all its keys. The slot
// must have been announced with CLUSTER SETSLOT MIGRATING: so nobody moves more than was meant.
func migrate(c *call) verdict {
	if v, ok := c.moved(); ok {
		return v
	}
	m := c.migrateArgs()
	if m.refusal != "" {
		return c.fail(m.refusal)
	}
	if c.routing == nil {
		return c.fail("ERR MIGRATE moves slots between the nodes of a cluster, and this server is in none")
	}
	to, found := c.routing.byEndpoint(net.JoinHostPort(m.host, m.port))
	slot := record.SlotOf(m.keys[0])
	for _, key := range m.keys[1:] {
		if record.SlotOf(key) != slot {
			return c.fail(errCrossSlot)
		}
	}
	switch {
	case !found:
		return c.fail("ERR no node of this cluster is at " + shown(c.args[1]) + ":" + shown(c.args[2]) + "; CLUSTER NODES lists them")
	case m.db != int64(c.db):
		return c.fail("ERR keys stay in their database when they move: give " + strconv.Itoa(c.db) + " as the destination's")
	}
	n, st := c.countHere(m.keys)
	switch {
	case st != store.OK:
		return c.stopped(st)
	case n == 0:
		c.out.SimpleString("NOKEY")
		return done
	case c.srv.books.slots.migratingTo(slot) != to.ID:
		s := strconv.Itoa(int(slot))
		return c.fail("ERR slot " + s + " moves whole or not at all: announce it with CLUSTER SETSLOT " + s + " MIGRATING " + redisID(to.ID) + ", or use `ostro migrate`")
	}
	return c.moveSlot(slot, to.ID, true)
}

// countHere is how many of the keys are here and this node's.
func (c *call) countHere(keys [][]byte) (n int, _ store.Status) {
	for _, key := range keys {
		k := c.ss.Key(c.db, key)
		if !c.routing.holds(k.Place) {
			continue
		}
		switch _, st := c.ss.Get(&k); st {
		case store.OK:
			n++
		case store.NotFound:
		default:
			return 0, st
		}
	}
	return n, store.OK
}

// byEndpoint finds a node by where clients reach it.
func (r *Routing) byEndpoint(addr string) (Node, bool) {
	for _, n := range r.nodes {
		if addr == n.Address || addr == n.TLSAddress && addr != "" {
			return n, true
		}
	}
	return Node{}, false
}
