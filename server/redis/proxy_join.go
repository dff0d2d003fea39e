package redis

import (
	"bytes"
	"math/rand/v2"
	"strconv"

	"github.com/ostrodb/ostro/wire/resp"
)

// joins are the commands on many keys that may be divided by key, and how one
// answer is made of the parts'. The parts are executed on their own: other clients
// may see some of them done and others not.
var joins = map[string]func(replies [][]byte) []byte{
	"mget":   joinElements,
	"mset":   joinOK,
	"del":    joinSum,
	"unlink": joinSum,
	"exists": joinSum,
	"touch":  joinSum,
}

// spreads are the commands that go to all nodes.
var spreads = map[string]func(replies [][]byte) []byte{
	"dbsize":    joinSum,
	"keys":      joinElements,
	"flushall":  joinOK,
	"flushdb":   joinOK,
	"randomkey": joinAny,
}

func (cmd *command) divides() bool { return joins[cmd.name] != nil }

// divide sends each key of a command to its owner.
func (l *loop) divide(c *conn, cmd *command, args [][]byte) {
	h := &hop{c: c, write: cmd.flags&flagWrite != 0, join: joins[cmd.name]}
	for i := 1; i < len(args); i += cmd.step {
		body := append([][]byte{args[0]}, args[i:i+cmd.step]...)
		h.parts = append(h.parts, &parcel{
			place: l.sess.Key(c.db, args[i]).Place, body: resp.AppendCommand(nil, body...), replies: 1,
		})
	}
	l.tally.ran(cmd)
	l.depart(h)
}

// spread sends a command on a whole database to all nodes that own a part of
// it, and SCAN to one or a few of them. It returns false where the command's own
// handler has to say what is wrong with it.
func (l *loop) spread(c *conn, cmd *command, args [][]byte) bool {
	h := &hop{c: c, write: cmd.flags&flagWrite != 0, join: spreads[cmd.name]}
	switch {
	case cmd.name == "scan":
		if !h.scan(l.routing, args) {
			return false
		}
	case h.join == nil:
		return false
	case h.write:
		l.spreadFlush(h, args)
	default:
		for _, n := range l.routing.places.Owners() {
			h.parts = append(h.parts, &parcel{node: n, body: resp.AppendCommand(nil, args...), replies: 1})
		}
	}
	if len(h.parts) == 0 {
		return false
	}
	l.tally.ran(cmd)
	l.depart(h)
	return true
}

// scan sends a SCAN to those who own what its cursor comes to.
func (h *hop) scan(r *Routing, args [][]byte) bool {
	cursor, ok := parseCursor(args[1])
	parts := r.scanParts(cursor)
	if !ok || len(parts) == 0 {
		return false
	}
	for _, p := range parts {
		own := append([][]byte(nil), args...)
		own[1] = p.argument()
		h.parts = append(h.parts, &parcel{place: p.First, body: resp.AppendCommand(nil, own...), replies: 1})
	}
	h.join = joinScans(parts[0].cursor)
	return true
}

// bulkNumber reads a bulk string, as it came over the wire, as a number.
func bulkNumber(raw []byte) uint64 {
	for i := range raw {
		if raw[i] == '\n' {
			n, _ := parseDigits(raw[i+1 : len(raw)-2])
			return n
		}
	}
	return 0
}

func joinOK([][]byte) []byte { return []byte("+OK\r\n") }

// joinSum adds integers.
func joinSum(replies [][]byte) []byte {
	sum := int64(0)
	for _, r := range replies {
		n, _ := parseInt(r[1 : len(r)-2])
		sum += n
	}
	return append(strconv.AppendInt([]byte{':'}, sum, 10), '\r', '\n')
}

// joinElements makes one array of several. What is none has no elements.
func joinElements(replies [][]byte) []byte {
	n := int64(0)
	var all []byte
	for _, r := range replies {
		header, elements, _ := bytes.Cut(r, []byte("\r\n"))
		if !bytes.HasPrefix(header, []byte{'*'}) {
			continue
		}
		if has, ok := parseInt(header[1:]); ok && has > 0 {
			n += has
			all = append(all, elements...)
		}
	}
	var w resp.Writer
	w.Array(int(n))
	w.Raw(all)
	return w.Bytes()
}

// joinAny is one of the replies that are not null, or a null.
func joinAny(replies [][]byte) []byte {
	first := rand.IntN(len(replies))
	for i := range replies {
		if r := replies[(first+i)%len(replies)]; string(r) != "$-1\r\n" && string(r) != "_\r\n" {
			return r
		}
	}
	return replies[0]
}
