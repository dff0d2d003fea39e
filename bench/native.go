package bench

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/wire"
)

// newBatches builds a ring of native batches, each of so many operations. A read-modify-write is one
// operation here: the server reads the value and writes it changed.
func newBatches(mix workload.Mix, keys workload.Encoding, value []byte, ops int, seed uint64) (*requests, error) {
	if mix.Insert > 0 || mix.Add > 0 {
		return nil, fmt.Errorf("%s inserts records or counts, which native batches are not made for here; choose another workload", mix.Name)
	}
	r := &requests{keys: keys}
	key := make([]byte, keys.Len())
	keys.Put(key, 0)
	start := 0
	for i, kind := range mix.Deck(slotsFor(ops), seed) {
		s := slot{from: len(r.bytes), replies: 1, keys: 1, writes: kind != workload.Read}
		if i%ops == 0 {
			r.frames = append(r.frames, len(r.bytes))
			r.bytes, start = wire.BeginBatch(r.bytes, &wire.Batch{Client: 1})
		}
		op := wire.Op{Code: wire.OpRead, Tag: uint32(i % ops), Key: key}
		switch kind {
		case workload.Update:
			op.Code, op.Arg = wire.OpPut, value
		case workload.Modify:
			op.Code, op.Arg = wire.OpMerge, wire.AppendMerge(nil, "or", []byte{'0'})
		}
		r.bytes = wire.AppendOp(r.bytes, &op, 0)
		at := len(r.bytes) - len(op.Arg)
		s.key[0] = at - len(key)
		if kind == workload.Update && len(value) >= workload.StampLen {
			s.stamp = at
		}
		if i%ops == ops-1 {
			r.bytes = wire.EndBatch(r.bytes, start, ops)
		}
		s.to = len(r.bytes)
		r.slots = append(r.slots, s)
	}
	return r, nil
}

// inView is a copy of the ring whose batches are made for a view.
func (r *requests) inView(view uint64) *requests {
	c := r.copy()
	for _, at := range r.frames {
		binary.LittleEndian.PutUint64(c.bytes[at+wire.HeaderBytes:], view)
	}
	return c
}

// dialNative opens a session, and returns the ring for the view that the server is in.
func dialNative(addr string, ring *requests) (int, *requests, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return -1, nil, err
	}
	view, err := greet(c, addr)
	if err != nil {
		_ = c.Close()
		return -1, nil, fmt.Errorf("open a session: %w", err)
	}
	fd, err := takeFD(c)
	return fd, ring.inView(view), err
}

// greet says hello and learns the server's view.
func greet(c net.Conn, addr string) (view uint64, err error) { return greetAs(c, addr, fleetMember{}) }

// greetAs does so as a tenant.
func greetAs(c net.Conn, addr string, m fleetMember) (view uint64, err error) {
	_ = c.SetDeadline(time.Now().Add(controlTimeout)) // A broken connection fails below.
	hello := wire.AppendHello([]byte(wire.Magic), &wire.Hello{Version: wire.Version, Client: 1, User: []byte(m.name), Secret: []byte(m.password)})
	if _, err := c.Write(hello); err != nil {
		return 0, err
	}
	in := bufio.NewReader(c)
	for {
		t, body, err := readFrame(in)
		if err != nil {
			return 0, err
		}
		switch t {
		case wire.TypeWelcome:
		case wire.TypeMap:
			m, err := wire.DecodeMap(body)
			if err != nil {
				return 0, err
			}
			return viewOf(m, addr)
		default:
			return 0, fmt.Errorf("the server answered a hello with a %s frame", t)
		}
	}
}

// readFrame reads a frame of any length.
func readFrame(in *bufio.Reader) (wire.Type, []byte, error) {
	var head [wire.HeaderBytes]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, nil, err
	}
	body := make([]byte, binary.LittleEndian.Uint32(head[:])-1)
	_, err := io.ReadFull(in, body)
	return wire.Type(head[4]), body, err
}

// viewOf is the view of the server at an address, which does not always know its own.
func viewOf(m *wire.Map, addr string) (uint64, error) {
	for _, n := range m.Nodes {
		if n.Address == "" || sameAddr(n.Address, addr) {
			return uint64(n.View), nil
		}
	}
	return 0, fmt.Errorf("%s owns nothing", addr)
}

// feedFrames is feed for a native stream.
func (r *replies) feedFrames(b []byte) (done int) {
	if len(r.line) > 0 {
		r.line = append(r.line, b...)
		b = r.line
	}
	for {
		t, body, n, _, err := wire.Next(b, wire.MaxFrameBytes)
		if err != nil {
			r.odd = true
			return done
		}
		if n == 0 {
			break
		}
		b = b[n:]
		done += r.frame(t, body)
	}
	r.line = append(r.line[:0], b...)
	return done
}

// frame takes one frame and returns how many results are in it.
func (r *replies) frame(t wire.Type, body []byte) (done int) {
	if t != wire.TypeResults {
		r.fail("a " + t.String() + " frame: ownership has changed, or the session is over")
		return 0
	}
	results, err := wire.DecodeResults(body)
	for ; err == nil && results.More(); done++ {
		var one wire.Result
		if err = results.Next(&one); err != nil {
			break
		}
		switch one.Status {
		case wire.OK:
		case wire.NotFound:
			r.nulls++
		default:
			r.fail(one.Status.String() + " " + string(one.Value))
		}
	}
	r.odd = r.odd || err != nil
	return done
}

// fail notes an error.
func (r *replies) fail(text string) {
	if r.fails++; r.fails == 1 {
		r.first = text
	}
}
