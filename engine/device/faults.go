package device

import "sync"

// Op is a kind of call that a Memory can be told to fail.
type Op uint8

// What can fail. Metadata counts as Create, Write and Sync for the steps of its
// replacement, as Read, and as Remove.
const (
	OpCreate Op = iota
	OpOpen
	OpRead
	OpWrite
	OpSync
	OpMap
	OpRemove
	opCount
)

func (op Op) String() string {
	return [opCount]string{"create", "open", "read", "write", "sync", "map", "remove"}[op]
}

// faults counts calls and fails the planned ones.
type faults struct {
	mu      sync.Mutex
	count   [opCount]int
	planned map[fault]error
}

// fault is one call of one kind, counted from the device's birth.
type fault struct {
	op  Op
	nth int
}

func (f *faults) plan(op Op, nth int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.planned == nil {
		f.planned = make(map[fault]error)
	}
	f.planned[fault{op, f.count[op] + nth}] = err
}

func (f *faults) calls(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[op]
}

// hit counts a call and tells how it must fail, if it must.
func (f *faults) hit(op Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[op]++
	return f.planned[fault{op, f.count[op]}]
}
