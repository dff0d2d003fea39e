package redis

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

const errNoCluster = "ERR This instance has cluster support disabled"

// inCluster lets a handler run only in a cluster.
func inCluster(run handler) handler {
	return func(c *call) verdict {
		if c.srv.cfg.Cluster == nil {
			return c.fail(errNoCluster)
		}
		return run(c)
	}
}

// Ranges are given out by the coordinator, not by clients. Who asks for what
// Redis' own tools do by hand is told how it is done here.
func notByHand(what string) handler {
	return inCluster(func(c *call) verdict {
		return c.fail("ERR CLUSTER " + strings.ToUpper(cString(c.args[1])) + " is not how an Ostro cluster is run: " + what)
	})
}

// asking lets the next command use what is being imported here.
func asking(c *call) verdict {
	c.conn.asking = true
	return c.ok()
}

// readonly and readwrite change nothing: backups serve nobody, and what a node
// serves it may read and write.
func readonly(c *call) verdict { return c.ok() }

func clusterMyid(c *call) verdict {
	c.out.BulkString(redisID(c.routing.self))
	return done
}

func clusterKeyslot(c *call) verdict { return c.int(int64(record.SlotOf(c.args[2]))) }

// clusterSlots shows who serves which slots. A slot that is cut is shown with
// who has most of it; the keys of the others' parts are found by MOVED.
func clusterSlots(c *call) verdict {
	r := c.routing
	var shown []view.Slots
	for _, n := range r.sorted() {
		if n.endpoint(c.conn.tls) == "" {
			continue
		}
		for _, s := range r.slotsOf(n.ID) {
			s.Owners = []view.NodeID{n.ID}
			shown = append(shown, s)
		}
	}
	c.out.Array(len(shown))
	for _, s := range shown {
		n := r.nodes[s.Owners[0]]
		host, port := n.hostPort(c.conn.tls)
		c.out.Array(3)
		c.out.Int(int64(s.First))
		c.out.Int(int64(s.Last))
		c.out.Array(4)
		c.out.BulkString(host)
		c.out.Int(int64(port))
		c.out.BulkString(redisID(n.ID))
		c.out.Array(0)
	}
	return done
}

// clusterShards shows each node as a shard of its own: its backups hold copies
// that serve nobody.
func clusterShards(c *call) verdict {
	nodes := c.routing.sorted()
	c.out.Array(len(nodes))
	for i := range nodes {
		c.shard(&nodes[i])
	}
	return done
}

func (c *call) shard(n *Node) {
	out, slots := c.out, c.routing.slotsOf(n.ID)
	out.Map(2)
	out.BulkString("slots")
	out.Array(2 * len(slots))
	for _, s := range slots {
		out.Int(int64(s.First))
		out.Int(int64(s.Last))
	}
	out.BulkString("nodes")
	out.Array(1)
	host, port := n.hostPort(c.conn.tls)
	out.Map(7)
	out.BulkString("id")
	out.BulkString(redisID(n.ID))
	out.BulkString("port")
	out.Int(int64(port))
	out.BulkString("ip")
	out.BulkString(host)
	out.BulkString("endpoint")
	out.BulkString(host)
	out.BulkString("role")
	out.BulkString("master")
	out.BulkString("replication-offset")
	out.Int(0)
	out.BulkString("health")
	if n.Alive {
		out.BulkString("online")
	} else {
		out.BulkString("failed")
	}
}

// clusterNodes is the text that Redis' tools read. There is no bus between
// nodes that they could use, so its port is 0.
func clusterNodes(c *call) verdict {
	r := c.routing
	var text strings.Builder
	for _, n := range r.sorted() {
		host, port := n.hostPort(c.conn.tls)
		flags, link := "master", "connected"
		if n.ID == r.self {
			flags = "myself," + flags
		}
		if !n.Alive {
			flags, link = flags+",fail", "disconnected"
		}
		fmt.Fprintf(&text, "%s %s:%d@0 %s - 0 0 %d %s", redisID(n.ID), host, port, flags, r.places.ViewID(n.ID), link)
		for _, s := range r.slotsOf(n.ID) {
			text.WriteString(" " + slotRange(s))
		}
		if n.ID == r.self {
			r.showMigrations(&text)
			c.srv.books.slots.show(&text, r)
		}
		text.WriteByte('\n')
	}
	c.out.Verbatim("txt", text.String())
	return done
}

func slotRange(s view.Slots) string {
	if s.First == s.Last {
		return strconv.Itoa(int(s.First))
	}
	return fmt.Sprintf("%d-%d", s.First, s.Last)
}

// showMigrations adds slots on their way, as Redis shows them: [slot->-to], [slot-<-from].
func (r *Routing) showMigrations(text *strings.Builder) {
	show := func(ms []Migration, arrow string) {
		for _, m := range ms {
			for _, g := range m.Ranges.AtSlots() {
				fmt.Fprintf(text, " [%d%s%s]", g.First.Slot(), arrow, redisID(m.Node))
			}
		}
	}
	show(r.change.Exporting, "->-")
	show(r.change.Importing, "-<-")
}

func clusterInfo(c *call) verdict {
	r := c.routing
	var w infoWriter
	served, size, down := 0, 0, 0
	for _, n := range r.nodes {
		slots := 0
		for _, s := range r.slotsOf(n.ID) {
			slots += int(s.Last-s.First) + 1
		}
		if !n.Alive {
			down += slots
		}
		if served += slots; slots > 0 {
			size++
		}
	}
	state := "ok"
	if served < record.PlaceSlots || !c.srv.cfg.Cluster.Alive() {
		state = "fail"
	}
	w.line("cluster_state", state)
	w.line("cluster_slots_assigned", served)
	w.line("cluster_slots_ok", served-down)
	w.line("cluster_slots_pfail", 0)
	w.line("cluster_slots_fail", down)
	w.line("cluster_known_nodes", len(r.nodes))
	w.line("cluster_size", size)
	w.line("cluster_current_epoch", r.Epoch())
	w.line("cluster_my_epoch", r.places.ViewID(r.self))
	w.line("cluster_stats_messages_sent", 0)
	w.line("cluster_stats_messages_received", 0)
	w.line("total_cluster_links_buffer_limit_exceeded", 0)
	c.out.Verbatim("txt", w.text.String())
	return done
}

// clusterLinks is empty: nodes are no peers on a bus of their own.
func clusterLinks(c *call) verdict {
	c.out.Array(0)
	return done
}

// clusterReplicas is empty for every node, as shards have one node each.
func clusterReplicas(c *call) verdict {
	if _, ok := c.routing.byRedisID(c.args[2]); !ok {
		return c.fail("ERR Unknown node " + shown(c.args[2]))
	}
	c.out.Array(0)
	return done
}

// clusterFailureReports is 0: nodes do not vote on each other, leases decide.
func clusterFailureReports(c *call) verdict {
	if _, ok := c.routing.byRedisID(c.args[2]); !ok {
		return c.fail("ERR Unknown node " + shown(c.args[2]))
	}
	return c.int(0)
}

// slotArg reads an argument as a slot; ok is false if it is none.
func (c *call) slotArg(i int) (uint16, bool) {
	n, ok := parseInt(c.args[i])
	return uint16(n), ok && 0 <= n && n < record.PlaceSlots
}

func clusterCountkeysinslot(c *call) verdict {
	slot, ok := c.slotArg(2)
	if !ok {
		return c.fail("ERR Invalid slot")
	}
	found, v := c.walkSlot(slot, math.MaxInt, func(l *keyList, _ []byte) { l.n++ })
	if found != nil {
		return c.int(int64(found.n))
	}
	return v
}

// clusterGetkeysinslot lists keys for those who want to move them. There are none in a slot
// that was announced to move: it goes whole with CLUSTER SETSLOT NODE.
func clusterGetkeysinslot(c *call) verdict {
	slot, ok := c.slotArg(2)
	most, isInt := parseInt(c.args[3])
	if !ok || !isInt || most < 0 {
		return c.fail("ERR Invalid slot or number of keys")
	}
	if c.srv.books.slots.migratingTo(slot) != "" {
		most = 0
	}
	found, v := c.walkSlot(slot, int(min(most, mostScanned)), (*keyList).add)
	if found != nil {
		found.answer(c.out)
	}
	return v
}

// walkSlot shows a slot's keys that are served here to add, until it has most of them; see walk.
func (c *call) walkSlot(slot uint16, most int, add func(l *keyList, key []byte)) (found *keyList, v verdict) {
	g := view.SlotsRange(slot, slot)
	return c.walk(g.First, g.Last, most, func(l *keyList, key []byte, _ *store.View) {
		if c.owns(key) {
			add(l, key)
		}
	})
}

// owns tells whether a key that a scan found is this node's: others may lie in
// the store for a while after their range has left, or before all of it has come.
func (c *call) owns(key []byte) bool {
	return c.routing == nil || c.routing.holds(c.ss.Key(c.db, key).Place)
}
