package redis

import (
	"github.com/ostrodb/ostro/engine/store"
	calls "github.com/ostrodb/ostro/server/call"
	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/wire/resp"
)

// call is one command being executed. It lives in the worker that runs it and
// is used again for the next command: handlers keep no reference to it.
type call struct {
	srv  *Server
	conn *conn
	ss   *store.Session
	cmd  *command
	args [][]byte     // args[0] is the name as sent; valid until the handler returns
	out  *resp.Writer // appends the reply; knows RESP2 or RESP3
	now  int64        // unix milliseconds, one per round
	db   int          // the selected database; SELECT sets conn.db instead

	caller  *calls.Caller
	running bool           // between the caller's Begin and End
	request calls.Request  // of the function that it calls
	on      *library.Shelf // instead of the connection's, during TENANT FUNCTION
	routing *Routing       // of this round; nil: no cluster
	scratch scratch        // memory that handlers build values in
}

// verdict is what a handler reports back to the loop.
type verdict uint8

const (
	// done: the reply is complete.
	done verdict = iota
	// cold: a key lies on disk and nothing was changed. The loop discards the
	// reply, fetches what the session missed, and runs the handler again from
	// its start; meanwhile the connection waits and the others go on.
	cold
	// later: something runs in the background that the handler started. The loop
	// discards the reply and runs the handler again when it is told to.
	later
)

// handler runs one command. Arity, authentication and the memory limit were
// checked before.
type handler func(c *call) verdict
