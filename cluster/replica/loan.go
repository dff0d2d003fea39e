package replica

import (
	"fmt"
	"sync"

	"github.com/ostrodb/ostro/fabric"
)

// A copy for a backup on the same machine needs no wire. The primary lays the segment in memory that both can map, and a
// put says where: the backup writes its file from there. That saves a socket's copies at both ends, which were a third of what
// the copies of moved records cost.
//
// Invariant: what a backup may still read is not changed. So memory is used again only if all puts of it were answered.

// loans is such memory, for segments that are copied together.
type loans struct {
	bytes int // of the largest segment; 0: none is lent

	mu   sync.Mutex
	free []*loan
}

// loan is memory for one segment.
type loan struct {
	memory *fabric.Memory
	share  fabric.Share
}

// take gives memory; nil if there is none to be had.
func (l *loans) take() *loan {
	if l == nil || l.bytes == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.free) - 1; last >= 0 {
		one := l.free[last]
		l.free = l.free[:last]
		return one
	}
	memory, share, err := fabric.NewShared(l.bytes)
	if err != nil {
		return nil // The wire does it, too.
	}
	return &loan{memory, share}
}

// giveBack takes memory back. If somebody may still read it, it is not used again.
func (l *loans) giveBack(one *loan, read bool) {
	if read {
		_ = one.memory.Close() // Who has mapped it keeps it.
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, one)
}

func (l *loans) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.free {
		_ = one.memory.Close()
	}
	l.free = nil
}

// memoryOf gives the bytes of a put, which came with it or lie in memory of its primary, until done, which may be called again.
func memoryOf(q *PutRequest, bulk []byte) (bytes []byte, done func(), err error) {
	if q.Share == nil {
		return bulk, func() {}, nil
	}
	m, err := fabric.OpenShared(*q.Share)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return m.Bytes()[:min(len(m.Bytes()), int(q.End))], func() { _ = m.Close() }, nil
}
