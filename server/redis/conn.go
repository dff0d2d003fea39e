package redis

import (
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/tenant/sched"
	"github.com/ostrodb/ostro/wire/resp"
)

// replyMode is what CLIENT REPLY chose.
type replyMode uint8

const (
	replyOn       replyMode = iota
	replyOff                // nothing is answered
	replySkipNext           // CLIENT REPLY SKIP itself: the next command's reply is dropped
	replySkip               // this command's reply is dropped
)

// conn is one client.
//
// The loop that serves it owns every plain field; handlers run there and use
// them freely. Other loops see a conn only through the registry (CLIENT LIST,
// CLIENT KILL) and may read what is fixed for life and what is atomic.
type conn struct {
	// Fixed for life.
	srv     *Server
	id      uint64
	fd      int    // the socket, or -1
	pipe    *pipe  // instead of a socket, or nil
	addr    string // the client's address, "path:0" for a unix socket
	laddr   string // ours
	created int64  // unix milliseconds
	unix    bool
	tls     bool

	// Read by other loops.
	lastSeen    atomic.Int64            // unix milliseconds of the last bytes that arrived
	lastCommand atomic.Pointer[command] // nil before the first
	shownDB     atomic.Int32            // db, as CLIENT LIST shows it
	shownMulti  atomic.Int32            // commands queued, -1 outside MULTI
	shownProto  atomic.Int32
	name        atomic.Pointer[string] // CLIENT SETNAME, nil for none
	libName     atomic.Pointer[string] // CLIENT SETINFO
	libVer      atomic.Pointer[string]
	user        atomic.Pointer[string] // the authenticated user
	noEvict     atomic.Bool            // CLIENT NO-EVICT
	noTouch     atomic.Bool            // CLIENT NO-TOUCH
	queryBytes  atomic.Int64           // input that waits in the conn's own buffer
	outputBytes atomic.Int64           // replies that wait to be sent
	bytesIn     atomic.Int64
	bytesOut    atomic.Int64
	loop        atomic.Pointer[loop] // changes when the conn moves

	// Owned by the loop.
	db            int // the store's number
	firstDB       int // that of the client's database 0
	databases     int // it has so many
	purse         tenant.Purse
	share         *sched.Share   // its tenant's; nil until it is needed
	shelf         *library.Shelf // what its tenant has installed; nil: nobody has asked yet
	lent          *library.Shelf // its tenant's, while the client has not read code that it asked for
	settled       [2]int64       // bytes in and out that its tenant was charged for
	counted       int64          // bytes of its input that its tenant was told of
	unread        int64          // bytes of its replies that its tenant was told of
	waiting       bool           // its command waits, and its tenant was told
	paid          bool           // its next command was put aside, and its tenant has paid for it
	authenticated bool
	reply         replyMode
	inner         bool // another node's: nothing is forwarded for it
	asking        bool // ASKING: its next command may use what is imported
	closing       bool // answer what was answered so far, then close (QUIT)
	multi         multiState
	flight        flight // commands that other nodes execute for it
	pin           *link  // its own, for what it watches at another node; or nil
	pinSlot       int
	resume        resumption  // what a handler keeps while it waits for cold keys
	out           resp.Writer // holds the protocol version

	net netState
}

// multiState is a transaction under way: what MULTI queued and WATCH saw.
type multiState struct {
	active bool // between MULTI and EXEC or DISCARD
	dirty  bool // a command could not be queued: EXEC aborts
	queue  []queued
	bytes  int   // that it takes, about
	steps  int64 // keys of its commands, one for those without
	watch  []watched
	keys   map[watchedKey]struct{} // of watch, once they are many
	stamps int                     // bytes that watch takes, about
}

const (
	queuedBytes  = 128 // what a queued command takes beside its arguments, about
	watchedBytes = 192 // the same of a watched key, which many stand in twice
)

// size is how many bytes it takes, about.
func (m *multiState) size() int64 {
	bytes := m.stamps
	if len(m.queue) > 0 { // or it was too long
		bytes += m.bytes
	}
	return int64(bytes)
}

// watchedKey is which key is watched.
type watchedKey struct {
	db  int
	key string
}

// queued is a command that waits for EXEC. It owns copies of its arguments.
type queued struct {
	cmd  *command
	args [][]byte
}

// watched is a key as it was when WATCH saw it. It owns the key's bytes; the
// view's value must not be read, it only serves as a stamp.
type watched struct {
	db   int
	key  store.Key
	view store.View
}

// load returns *p, or "" for nil.
func load(p *atomic.Pointer[string]) string {
	if s := p.Load(); s != nil {
		return *s
	}
	return ""
}
