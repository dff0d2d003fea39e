package tenant

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/prefetch"
	"github.com/ostrodb/ostro/tenant/sched"
)

// Account is a tenant on this node: what it may, and what it has used.
type Account struct {
	tenant atomic.Pointer[Tenant]
	gone   atomic.Bool
	weigh  func(*Tenant) int64
	pace   pace
	share  *sched.Share
	memory Memory

	results store.Payer // what is kept of its clients' operations

	connections, waiting atomic.Int64
	input                atomic.Int64 // bytes of commands that cannot be executed yet
	unread               atomic.Int64 // bytes of answers
	used                 usage
}

// usage only grows.
type usage struct {
	operations, refused, bytesIn, bytesOut atomic.Int64
}

// Usage is what a tenant has used of this node, and uses.
type Usage struct {
	Name        string    `json:"name"`
	Databases   int       `json:"databases"`
	Created     time.Time `json:"created"`
	Limits      Limits    `json:"limits"`
	Bytes       int64     `json:"bytes"`   // that its records take
	Results     int64     `json:"results"` // bytes of what is kept of its clients' operations
	Keys        int64     `json:"keys"`
	Connections int64     `json:"connections"`
	Waiting     int64     `json:"waiting"` // operations that wait
	Input       int64     `json:"input"`   // bytes that clients have sent and that cannot be executed yet, see Hold
	Unread      int64     `json:"unread"`  // bytes of answers that clients have not read, see Unread

	FunctionMemory int64 `json:"functionMemory"` // bytes that instances of functions have
	FunctionCalls  int64 `json:"functionCalls"`  // in the scheduler

	// Since the start:
	Operations int64 `json:"operations"`
	Refused    int64 `json:"refused"`
	BytesIn    int64 `json:"bytesIn"`
	BytesOut   int64 `json:"bytesOut"`

	FunctionNanos     int64 `json:"functionNanos"`     // that functions ran
	FunctionThrottled int64 `json:"functionThrottled"` // times that they waited for their part of the CPU
	FunctionRefused   int64 `json:"functionRefused"`   // calls and memory
}

// Tenant is who it is, as of now.
func (a *Account) Tenant() *Tenant { return a.tenant.Load() }

// Gone tells that the tenant was deleted: nothing is served any more.
func (a *Account) Gone() bool { return a.gone.Load() }

// Exceeded is a limit that is reached. Its text says what to do.
type Exceeded struct {
	Tenant, What string
	Limit        int64
	Asked        int64 // at once, if that is more than there ever is
}

func (e *Exceeded) Error() string {
	if e.Asked > 0 {
		return fmt.Sprintf("tenant %s has a limit of %d operations a second, and %d keys at once are as many operations: use fewer at a time, or have the limit raised", e.Tenant, e.Limit, e.Asked)
	}
	hint := "wait, or have the limit raised"
	switch e.What {
	case "bytes":
		hint = "delete something, or have the limit raised"
	case "connections":
		hint = "close one, or have the limit raised"
	case "inflight":
		hint = "have fewer at a time, or have the limit raised"
	case "function-memory":
		hint = "have fewer calls at a time or functions that use less, or have the limit raised"
	case "held":
		hint = "have fewer such calls at a time, or functions that respond with less and write less"
	case "input":
		hint = "send long commands and transactions over fewer connections at a time, and each to its end"
	case "results":
		hint = "have clients read the answers and confirm them, wait some minutes, or have the limit of bytes raised"
	}
	return fmt.Sprintf("tenant %s has reached its limit of %s %s: %s", e.Tenant, strconv.FormatInt(e.Limit, 10), whatOf[e.What], hint)
}

var whatOf = map[string]string{
	"bytes": "bytes", "operations": "operations a second", "connections": "connections", "inflight": "operations that wait",
	"function-memory": "bytes of functions' memory", "held": "bytes that its calls keep at a time", "results": "bytes for results that clients have not confirmed",
	"input": "bytes that its clients have sent of unfinished commands and transactions",
}

func (a *Account) exceeded(what string, limit int64) error {
	a.used.refused.Add(1)
	return &Exceeded{Tenant: a.Tenant().Name, What: what, Limit: limit}
}

// Used is what the tenant uses of this node now: bytes, those of results that are kept, connections, and operations that wait.
func (a *Account) Used() (bytes, results, connections, waiting int64) {
	return a.weigh(a.Tenant()), a.results.Bytes(), a.connections.Load(), a.waiting.Load()
}

// Connect notes a connection, or says that there are too many.
func (a *Account) Connect() error {
	limit := a.Tenant().Limits.Connections
	if n := a.connections.Add(1); limit > 0 && n > limit {
		a.connections.Add(-1)
		return a.exceeded("connections", limit)
	}
	return nil
}

// Disconnect takes a Connect back.
func (a *Account) Disconnect() { a.connections.Add(-1) }

// Wait notes n operations that wait for a disk or for another node, or says that there are too many.
func (a *Account) Wait(n int64) error {
	limit := a.Tenant().Limits.InFlight
	if now := a.waiting.Add(n); limit > 0 && now > limit {
		a.waiting.Add(-n)
		return a.exceeded("inflight", limit)
	}
	return nil
}

// Proceed takes a Wait back.
func (a *Account) Proceed(n int64) { a.waiting.Add(-n) }

// Hold notes that the server keeps so many bytes more than before, or less, of what the tenant's clients have sent and cannot
// be executed yet; or says that there are too many. Whoever asks for more has it until it says less.
func (a *Account) Hold(bytes int64) error {
	if now := a.input.Add(bytes); bytes > 0 && now > MaxInputBytes {
		a.input.Add(-bytes)
		return a.exceeded("input", MaxInputBytes)
	}
	return nil
}

// Unread notes how many bytes of answers wait for one of the tenant's clients to read them, if they are many, and tells whether it is to
// get no more: all of them together have left too many. What was noted of it before is told, which the caller keeps.
func (a *Account) Unread(told *int64, bytes int64) (tooMany bool) {
	if bytes <= UncountedBytes {
		bytes = 0
	}
	more := bytes - *told
	if more == 0 {
		return false
	}
	*told = bytes
	return a.unread.Add(more) > MaxUnreadBytes && more > 0
}

// Crowded tells that the tenant's clients have left so much unread that none of them is to get more before it has read.
func (a *Account) Crowded() bool { return a.unread.Load() > MaxUnreadBytes/2 }

// Traffic notes bytes that came from the tenant's clients, and went to them.
func (a *Account) Traffic(in, out int64) {
	if in > 0 {
		a.used.bytesIn.Add(in)
	}
	if out > 0 {
		a.used.bytesOut.Add(out)
	}
}

// Lines are where an account lies, as far as whoever charges for operations looks.
func (a *Account) Lines(l *prefetch.List) {
	l.Add(unsafe.Pointer(a), unsafe.Sizeof(*a))
	t := a.Tenant()
	l.Add(unsafe.Pointer(&t.Limits), unsafe.Sizeof(t.Limits))
}

// Room says that there is none for more bytes, if that is so.
func (a *Account) Room() error {
	t := a.Tenant()
	if limit := t.Limits.Bytes; limit > 0 && a.weigh(t)+a.results.Bytes() >= limit {
		return a.exceeded("bytes", limit)
	}
	return nil
}

// Results is charged for what is kept of its clients' operations, so that they run once.
func (a *Account) Results() *store.Payer { return &a.results }

// Part of the limit of bytes that results may take, and what they may at least.
const (
	resultsPart  = 4
	resultsFloor = 1 << 20
)

// Keep says that there is no room for more results, if that is so. It is for operations that need no other room:
// who is over the limit must be able to delete, yet not without end.
func (a *Account) Keep() error {
	limit := a.Tenant().Limits.Bytes
	if limit == 0 {
		return nil
	}
	if limit = max(limit/resultsPart, resultsFloor); a.results.Bytes() >= limit {
		return a.exceeded("results", limit)
	}
	return nil
}

// Purse is a connection's share of what its tenant may begin, and of its account. It belongs to
// whoever serves the connection; the zero value is the operator's, who pays nothing.
type Purse struct {
	account *Account
	left    int64 // operations that are granted
	spent   int64 // since Settle
}

// Purse opens a share.
func (a *Account) Purse() Purse { return Purse{account: a} }

// Account is whose it is; nil: the operator's.
func (p *Purse) Account() *Account { return p.account }

// Spend pays for n operations that come as one, such as a command on n keys, or says that they are too many by now. They
// may begin if one of them may; the tenant owes the rest, and nothing else begins before that is paid by time. now is a
// clock's nanoseconds.
func (p *Purse) Spend(n, now int64) error {
	if p.left >= n {
		p.left -= n
		p.spent += n
		return nil
	}
	a := p.account
	if limit := a.Tenant().Limits.Operations; limit > 0 {
		if n > max(limit, atOnce) {
			a.used.refused.Add(1)
			return &Exceeded{Tenant: a.Tenant().Name, What: "operations", Limit: limit, Asked: n}
		}
		if p.left == 0 {
			if p.left = a.pace.take(now, limit); p.left == 0 {
				return a.exceeded("operations", limit)
			}
		}
		if owed := n - p.left; owed > 0 {
			a.pace.owe(now, owed, limit)
		}
		p.left = max(p.left-n, 0)
	}
	p.spent += n
	return nil
}

// atOnce is how many operations may come as one, however low the limit is.
const atOnce = 64

// Owe charges for n operations that were done within another one, such as going through many keys. The tenant has done
// them when it is found out, so that nothing is refused; what comes next is, for a second at most.
func (p *Purse) Owe(n, now int64) {
	p.spent += n
	if limit := p.account.Tenant().Limits.Operations; limit > 0 {
		p.account.pace.owe(now, min(n, p.account.pace.credit(now, limit)), limit)
	}
}

// Return takes a Spend back, for an operation that will be tried again.
func (p *Purse) Return(n int64) {
	p.spent -= n
	p.left += n
}

// Settle adds to the account what was spent since it was last called.
func (p *Purse) Settle() {
	p.account.used.operations.Add(p.spent)
	p.spent = 0
}
