package nemesis

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/test/harness"
	"github.com/ostrodb/ostro/wire/resp"
)

// Fate is what became of a request.
type Fate int

const (
	// Answered: the replies say what happened.
	Answered Fate = iota
	// Refused: it was not executed, and never will be.
	Refused
	// Lost: nobody knows.
	Lost
)

// Router is one client: it finds the node that serves a key, as a cluster's clients do, or knows nothing of clusters and
// talks to any node, if all forward. It repeats only what was surely not executed. It is for one goroutine.
type Router struct {
	plain    bool     // it knows nothing of clusters
	home     string   // whom it talks to, then; empty if that did not answer the last time
	addrs    []string // where to ask if nothing is known
	patience time.Duration
	rng      *rand.Rand
	owners   map[uint16]string // by slot, as told by MOVED
	conns    map[string]*harness.Conn

	// Odd is the first error reply that no client should see.
	Odd string
	// heard is Odd for other goroutines.
	heard atomic.Pointer[string]
	// Refusals counts what was refused, by the first word of the reason.
	Refusals map[string]int
}

// attention is how long a client waits for one answer. It is longer than a lease,
// so that a stopped node is heard when it goes on, if it dares to speak.
const attention = 5 * time.Second

// NewRouter returns a client that knows some nodes. It tries for as long as its patience lasts.
func NewRouter(seed uint64, patience time.Duration, addrs ...string) *Router {
	return &Router{
		addrs: addrs, patience: patience, rng: rand.New(rand.NewPCG(seed, 1)),
		owners: map[uint16]string{}, conns: map[string]*harness.Conn{}, Refusals: map[string]int{},
	}
}

// Close ends its connections.
func (r *Router) Close() {
	for addr := range r.conns {
		r.hangUp(addr)
	}
}

func (r *Router) hangUp(addr string) {
	if c := r.conns[addr]; c != nil {
		c.Close()
		delete(r.conns, addr)
	}
}

// Do sends commands on one key, together, to who serves it, until they were executed or lost.
func (r *Router) Do(key string, commands ...[]string) ([]resp.Value, Fate) {
	for end := time.Now().Add(r.patience); time.Now().Before(end); {
		replies, fate := r.Try(key, commands...)
		if fate != Refused || r.Odd != "" {
			return replies, fate
		}
	}
	return nil, Refused
}

// Try is Do without repetition: who was sent elsewhere knows better next time. If any of the
// commands was refused, all are called so; one by one their replies tell.
func (r *Router) Try(key string, commands ...[]string) ([]resp.Value, Fate) {
	slot := record.PlaceOf(0, []byte(key)).Slot()
	addr := r.whom(slot)
	c := r.connect(addr)
	if c == nil {
		r.forget(slot)
		r.pause()
		return nil, Refused
	}
	replies, err := exchange(c, commands)
	if err != nil {
		r.hangUp(addr)
		r.forget(slot)
		return nil, Lost
	}
	for _, v := range replies {
		if e := failure(v); e != nil {
			r.refused(slot, addr, e.Error())
			return replies, Refused
		}
	}
	r.home, r.owners[slot] = addr, addr
	return replies, Answered
}

// whom is who is asked for a slot: anybody if nothing is known.
func (r *Router) whom(slot uint16) string {
	addr := r.owners[slot]
	if r.plain {
		addr = r.home
	}
	if addr == "" {
		addr = r.addrs[r.rng.IntN(len(r.addrs))]
	}
	return addr
}

// forget forgets who was asked for a slot.
func (r *Router) forget(slot uint16) {
	r.home = ""
	delete(r.owners, slot)
}

// failure is why a command was not executed, or a transaction. One of which only a part was is
// an error that no client should see.
func failure(v resp.Value) error {
	if v.Err() != nil || v.Kind != resp.Array {
		return v.Err()
	}
	var first error
	failed := 0
	for _, e := range v.Elems {
		if e.Err() != nil {
			failed, first = failed+1, e.Err()
		}
	}
	if failed > 0 && failed < len(v.Elems) {
		return fmt.Errorf("HALF of a transaction was executed: %s", harness.Text(v))
	}
	return first
}

func exchange(c *harness.Conn, commands [][]string) ([]resp.Value, error) {
	for _, command := range commands {
		if err := c.Send(command...); err != nil {
			return nil, err
		}
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	var replies []resp.Value
	for range commands {
		v, err := c.Receive()
		if err != nil {
			return nil, err
		}
		replies = append(replies, v)
	}
	return replies, nil
}

func (r *Router) connect(addr string) *harness.Conn {
	if c := r.conns[addr]; c != nil {
		return c
	}
	c, err := harness.Connect(addr, attention)
	if err != nil {
		return nil
	}
	r.conns[addr] = c
	return c
}

// refused learns from an error reply.
func (r *Router) refused(slot uint16, addr, why string) {
	words := strings.Fields(why)
	r.Refusals[words[0]]++
	r.forget(slot)
	switch words[0] {
	case "MOVED":
		if !r.plain && len(words) == 3 && words[1] == strconv.Itoa(int(slot)) {
			r.owners[slot] = words[2]
			return
		}
		r.odd(addr, why)
	case "CLUSTERDOWN", "TRYAGAIN", "LOADING", "OOM", "MISCONF", "ASK":
		r.pause()
	default:
		if strings.Contains(why, "no space left") {
			r.pause()
			return
		}
		r.odd(addr, why)
	}
}

func (r *Router) odd(addr, why string) {
	if r.Odd == "" {
		r.Odd = addr + " answered " + strconv.Quote(why)
		r.heard.Store(&r.Odd)
	}
}

// pause lets the machine do something else before the next try.
func (r *Router) pause() { time.Sleep(time.Duration(5+r.rng.IntN(20)) * time.Millisecond) }
