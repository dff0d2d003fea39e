package redis

import (
	"crypto/sha1"
	"encoding/hex"
	"net"
	"slices"
	"strconv"

	"github.com/ostrodb/ostro/cluster/view"
)

// redisID is a node's name as Redis clients want it: 40 hexadecimal digits.
// It is a hash of the name, so all nodes tell the same without asking each other.
func redisID(n view.NodeID) string {
	sum := sha1.Sum([]byte(n))
	return hex.EncodeToString(sum[:])
}

// endpoint is where clients of a kind, encrypted or not, reach a node.
func (n *Node) endpoint(tls bool) string {
	if tls && n.TLSAddress != "" || n.Address == "" {
		return n.TLSAddress
	}
	return n.Address
}

// hostPort splits the endpoint. What is not known is empty and 0.
func (n *Node) hostPort(tls bool) (host string, port int) {
	host, digits, err := net.SplitHostPort(n.endpoint(tls))
	if err != nil {
		return "", 0
	}
	port, _ = strconv.Atoi(digits) // A name of a port is none that clients understand.
	return host, port
}

// node is what is known of a node; ok is false if clients cannot reach it.
func (r *Routing) node(id view.NodeID) (n Node, ok bool) {
	n, ok = r.nodes[id]
	return n, ok && n.endpoint(false) != ""
}

// sorted is all nodes in the order of their names.
func (r *Routing) sorted() []Node {
	all := make([]Node, 0, len(r.nodes))
	for _, n := range r.nodes {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b Node) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return all
}

// byRedisID finds a node by the name that Redis clients have for it.
func (r *Routing) byRedisID(id []byte) (Node, bool) {
	for _, n := range r.nodes {
		if redisID(n.ID) == string(id) {
			return n, true
		}
	}
	return Node{}, false
}

// slotsOf is what a node shows as its own: a slot that is cut belongs to who
// has the largest part of it, for clients know of whole slots only.
func (r *Routing) slotsOf(id view.NodeID) []view.Slots {
	var own []view.Slots
	for _, s := range r.shown {
		if s.Owners[0] != id {
			continue
		}
		if n := len(own); n > 0 && own[n-1].Last+1 == s.First {
			own[n-1].Last = s.Last
			continue
		}
		own = append(own, view.Slots{First: s.First, Last: s.Last})
	}
	return own
}
