// Package fabric is one-sided memory, shaped like RDMA verbs: a program hands
// work requests to a NIC, and the NIC moves bytes between registered regions of
// two processes without the other one's CPU. It holds the interfaces, the bytes
// of a work request and memory to register; providers stand above it.
//
//	device ── domain ─┬─ region             memory that peers may reach, by key
//	                  ├─ queue pair ─────── requests, executed in order, to one peer
//	                  └─ completion queue   what was executed; a WAIT counts it
//
// What every provider promises (fabrictest holds them to it):
//   - Requests of a queue pair take effect in posting order.
//   - Bytes of a request land in increasing address order: a cut at any moment
//     leaves a prefix, and the last byte lands last.
//   - A successful completion means that the bytes are in the target's memory.
//   - Nothing lands outside a region, without its key, without the right, or
//     through a queue pair of another domain. Such a request ends in an access error, both
//     ends of the connection go to the error state, later requests are flushed.
//   - When Close, Revoke or Ban have returned, nothing lands any more, ever, in
//     the memory of the caller's device through what was closed, revoked or banned.
//   - 8-byte atomics are atomic towards each other, across queue pairs.
//   - A request that its poster left un-owned waits, and everything behind it,
//     until a write sets its owner byte; what it says at that moment is executed.
//   - A SEND that finds no RECV waits for one as long as its sender's RNRWait.
package fabric

import (
	"context"
	"errors"
	"time"
)

// Errors that callers decide on.
var (
	// ErrFull says that a queue has no room for the whole batch; nothing was posted.
	ErrFull = errors.New("fabric: queue is full")
	// ErrClosed says that the object, its domain or its device is closed.
	ErrClosed = errors.New("fabric: closed")
	// ErrBroken says that the queue pair is in the error state.
	ErrBroken = errors.New("fabric: queue pair is broken")
	// ErrBanned says that the peer was banned.
	ErrBanned = errors.New("fabric: peer is banned")
	// ErrNICLost says that the process that executes requests is gone.
	ErrNICLost = errors.New("fabric: the NIC is gone")
	// ErrUnsupported says that this provider cannot do what was asked; see Caps.
	ErrUnsupported = errors.New("fabric: not supported by this provider")
)

// Device is a program's access to a NIC. All methods of all interfaces here may
// be called by many goroutines at once.
type Device interface {
	// Caps tells what the provider can do beyond the least.
	Caps() Caps
	// Name is the peer name that this device shows to others.
	Name() string
	// NewDomain opens a protection domain for a tenant. Keys and queue pairs of one
	// domain are of no use in another.
	NewDomain(tenant string) (Domain, error)
	// Ban breaks every connection of this device with the named peer and refuses
	// new ones for as long as the device lives.
	Ban(peer string) error
	// Metrics tells what happened to this device's memory and queues.
	Metrics() (Metrics, error)
	// Close closes all that was made with the device.
	Close() error
}

// Caps tells what a provider can do beyond one-sided operations and messages.
type Caps struct {
	Wait         bool // WAIT requests, and completion queues that count for them
	Rings        bool // send queues can be registered, requests handed over, queues can repeat
	Persist      bool // FLUSH with Persist reaches the medium of file-backed regions
	WatchOrder   bool // a CPU that watches a target sees bytes land in order, not only the last one last
	Counts       bool // refusals and waits are counted in Metrics and told apart, failed memory is found
	SurvivesStop bool // requests are executed while the target's process is stopped
}

// Domain groups regions and queue pairs that may be used together.
type Domain interface {
	// Register lets the NIC use m. The memory must stay as long as it is needed by
	// the caller; the NIC has a mapping of its own.
	Register(m *Memory, access Access) (Region, error)
	// RegisterRing registers the send queue of a queue pair of this domain, so that
	// peers, or RECVs that scatter into it, can fill in requests that were posted
	// un-owned. Address 0 is slot 0; see SlotAddr.
	RegisterRing(q QP, access Access) (Region, error)
	// NewCQ makes a completion queue of at least depth entries; 0 makes one that only
	// counts what went well, for WAITs, and is never full.
	NewCQ(depth int) (CQ, error)
	NewQP(c QPConfig) (QP, error)
	// Close revokes the regions and closes the queues.
	Close() error
}

// Region is registered memory.
type Region interface {
	// Info is what a peer needs to reach the region.
	Info() RegionInfo
	// Piece names n bytes at an offset for the local side of a request.
	Piece(off uint64, n uint32) Piece
	// Revoke takes the key back. When it returns, nothing lands in the region any more.
	Revoke() error
}

// RegionInfo names a region to peers. Whoever has it can use it as far as the
// region's access goes, through a queue pair of the region's domain.
type RegionInfo struct {
	Key   uint64
	Base  uint64 // the address of the first byte
	Bytes uint64
}

// At names an offset in the region as the remote side of a request.
func (r RegionInfo) At(off uint64) Target { return Target{Key: r.Key, Addr: r.Base + off} }

// QPConfig says how a queue pair is made. Depths are rounded up to powers of two.
type QPConfig struct {
	SendCQ, RecvCQ CQ
	SendDepth      int           // default 128
	RecvDepth      int           // default 128
	RNRWait        time.Duration // how long a SEND waits for a RECV; default 10 s, negative for ever
	// Repeat makes the NIC go round both queues for ever: behind the last request
	// posted before Connect comes the first again. A request that was posted
	// un-owned is the host's again each time, and a WAIT's count grows by its B each
	// time. Nothing can be posted after Connect.
	Repeat bool
}

// DefaultRNRWait is how long a SEND waits for a RECV unless told otherwise.
const DefaultRNRWait = 10 * time.Second

// QP is one end of a reliable connection.
type QP interface {
	// Number is the queue pair's number in its completions.
	Number() uint32
	// Endpoint is what the peer passes to Connect.
	Endpoint() Endpoint
	// Connect names the peer and returns at once. Both ends connect; requests posted
	// earlier start when both have. A queue pair may be connected to itself.
	Connect(peer Endpoint) error
	// Ready waits until the connection is there.
	Ready(ctx context.Context) error
	State() State
	// Post appends a batch to the send queue: all of it, or none and ErrFull.
	Post(batch ...WR) error
	// PostRecv appends a batch to the receive queue.
	PostRecv(batch ...WR) error
	// Posted is the index of the next request to be posted; request i lies in slot i
	// modulo SendDepth.
	Posted() uint64
	// Done is how many requests have ended, in posting order: their slots are free.
	Done() uint64
	SendDepth() uint64
	// HandOver gives an un-owned request to the NIC, as a remote write to its owner byte does.
	HandOver(index uint64) error
	// Close breaks the connection and fences: when it returns, nothing lands through it here.
	Close() error
}

// State is where a queue pair is in its life.
type State uint32

// States only grow.
const (
	Fresh   State = iota // not connected, or the peer has not connected yet
	Ready                // requests are executed
	Failed               // broken: requests are flushed
	Retired              // closed
)

func (s State) String() string {
	return [...]string{"fresh", "ready", "failed", "retired"}[min(s, Retired)]
}

// Settled tells whether a wait for the connection is over, and how it ended.
func (s State) Settled() (over bool, err error) {
	switch s {
	case Fresh:
		return false, nil
	case Ready:
		return true, nil
	case Failed:
		return true, ErrBroken
	default:
		return true, ErrClosed
	}
}

// CQ is a completion queue.
type CQ interface {
	// Number names the queue in WAITs of the same domain.
	Number() uint32
	// Poll takes up to len(into) completions and says how many.
	Poll(into []Completion) int
	// Wait returns when Poll will find something. It spins for a moment, then sleeps.
	// In a queue that only counts there is never anything: use WaitPast.
	Wait(ctx context.Context) error
	// Count is the number of completions ever pushed; WAIT compares with it.
	Count() uint64
	// WaitPast returns when Count is greater than count.
	WaitPast(ctx context.Context, count uint64) error
	Close() error
}
