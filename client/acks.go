package client

import "sync"

// acks numbers a worker's writes and knows below which number all are answered.
type acks struct {
	mu    sync.Mutex
	first uint64 // the lowest number that may be unanswered
	open  []bool // from first on; true: unanswered
	head  int    // of open: what stands before is over
}

// next gives the next write its number.
func (a *acks) next() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = append(a.open, true)
	return a.first + uint64(len(a.open)-a.head) - 1
}

func (a *acks) done(seq uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open[a.head+int(seq-a.first)] = false
	for a.head < len(a.open) && !a.open[a.head] {
		a.head++
		a.first++
	}
	if a.head >= 1024 && a.head*2 >= len(a.open) {
		a.open = a.open[:copy(a.open, a.open[a.head:])]
		a.head = 0
	}
}

// below is the number that all lower ones are answered of.
func (a *acks) below() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.first
}
