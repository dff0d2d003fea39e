package call

import (
	"bytes"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/tenant/sched"
)

// Request is a call as a door has read it. Its bytes are the door's, and valid during Call and Start.
type Request struct {
	Shelf *library.Shelf
	Share *sched.Share // whose turns it takes in the scheduler
	Site  *Site        // where it comes from; nil: who knows
	// Worker is who usually calls for the connection: it finds the instance that it used last.
	Worker int
	Name   []byte
	Keys   [][]byte
	Args   [][]byte
	Scope  Scope
	// Named, if not nil, is the first key in table 0 of the function, which the door has looked up already.
	Named *store.Key
	// ReadOnly calls write nothing.
	ReadOnly bool
	// Once: the call has an identity, and may write. Object is the place of the key that it is routed by.
	Once   bool
	ID     store.OpID
	Object record.Place
	// Ground is what the node serves in the caller's round; nil: everything.
	Ground Ground
	// Grounds is what it serves now, asked for under a session's guard. It is nil if Ground is.
	Grounds func() Ground
	// Closed, if not nil, tells that nobody waits for the call any more.
	Closed *atomic.Bool
	// Account is the tenant's, who may have no room for what is written; nil: there is always room.
	Account *tenant.Account
}

// ground is what the node serves now.
func (r *Request) ground() Ground {
	if r.Grounds == nil {
		return nil
	}
	return r.Grounds()
}

// Scope is which tables of the store a call sees.
type Scope struct {
	Table  int // that of the request: the function's table 0
	First  int // the tenant's table 0 in the store
	Tables int // it has so many
}

// table is the store's number of what a function calls table n. 0 is the one of the request.
func (s *Scope) table(n uint32) (int, bool) {
	if n == 0 {
		return s.Table, true
	}
	return s.First + int(n), n < uint32(s.Tables)
}

// own makes the request's bytes its own.
func (r *Request) own() Request {
	c := *r
	c.Name, c.Named, c.Site = bytes.Clone(r.Name), nil, nil
	c.Keys, c.Args = cloneAll(r.Keys), cloneAll(r.Args)
	return c
}

// cloneAll copies pieces into one.
func cloneAll(pieces [][]byte) [][]byte {
	total := 0
	for _, p := range pieces {
		total += len(p)
	}
	room, out := make([]byte, 0, total), make([][]byte, len(pieces))
	for i, p := range pieces {
		at := len(room)
		room = append(room, p...)
		out[i] = room[at:len(room):len(room)]
	}
	return out
}
