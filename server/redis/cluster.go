package redis

import "github.com/ostrodb/ostro/cluster/view"

// Cluster is what a node of a cluster tells its front door. All methods may be
// called from any goroutine and never wait.
//
// A command runs only if the round's Routing says that its keys are served here, and its
// reply leaves only if Alive was true after it ran. Who takes a range away therefore
// publishes a Routing without it first and then waits until every session has
// passed (Store.AfterGuards): from then on nothing of that range runs here.
type Cluster interface {
	// Routing is who serves what, as of now; never nil. A loop asks once a round,
	// under its session's guard: it must cost no more than the load of a pointer.
	Routing() *Routing
	// Alive tells whether this node's lease is surely held at this instant. A loop
	// asks after it has executed a round and again before it releases replies
	// that were held. While it is false nothing is executed; what was executed and
	// not answered is never answered, its connections are closed.
	Alive() bool
	// Notify has f called after every change of what Routing returns, and after
	// Alive went from false to true or back if the node notices. f returns at once.
	// It stays until stop, after which it is not called any more.
	Notify(f func()) (stop func())
}

// Mapper is a Cluster that can find out who owns what as of now; Routing is as of when this node last heard of it.
type Mapper interface {
	// Latest calls done once, from any goroutine: with a map as it was at some moment after the call, when Routing is no
	// older and nothing of this node's own is being recovered or changes hands. It returns at once.
	Latest(done func(view.Map, error))
}

// Node is a node of the cluster as clients see it.
type Node struct {
	ID         view.NodeID
	Address    string // of its Redis port, host:port; empty if it has none
	TLSAddress string // of its encrypted port, for clients that use ours; empty: they get Address
	Alive      bool   // has a lease
}

// Migration is ranges on their way between this node and another.
type Migration struct {
	Ranges view.Ranges
	Node   view.NodeID // the other side
}
