package replica

import (
	"fmt"
	"sync"
	"time"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/internal/background"
)

// A copy for a backup on the same machine needs no wire. The primary lays the segment in memory that both can map, and a
// put says where: the backup writes its file from there. That saves a socket's copies at both ends, which were a third of what
// the copies of moved records cost.
//
// Memory that nobody has touched yet costs more than the copy into it: the kernel clears page after page, 5 ms of the 10 that a
// segment of 8 MiB took here. So there are few of them, which go from segment to segment, and outlive a pause between two.
//
// Invariant: what a backup may still read is not changed. So memory is used again only if all puts of it were answered.

// loans is such memory.
type loans struct {
	bytes int // of a segment; 0: none is lent

	mu     sync.Mutex
	free   []*loan
	out    int
	unused *time.Timer // gives back what is free
}

// loansKept is how long memory that nobody needs is kept: there are pauses between segments that follow each other.
const loansKept = 500 * time.Millisecond

// loan is memory for one segment.
type loan struct {
	memory *fabric.Memory
	share  fabric.Share
}

// take gives memory; nil if there is none to be had.
func (l *loans) take() *loan {
	if l.bytes == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.free) - 1; last >= 0 {
		one := l.free[last]
		l.free = l.free[:last]
		l.out++
		return one
	}
	memory, share, err := fabric.NewShared(l.bytes)
	if err != nil {
		return nil // The wire does it, too.
	}
	l.out++
	return &loan{memory, share}
}

// giveBack takes memory back. If somebody may still read it, it is not used again.
func (l *loans) giveBack(one *loan, read bool) {
	if read {
		_ = one.memory.Close() // Who has mapped it keeps it.
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !read {
		l.free = append(l.free, one)
	}
	if l.out--; l.out > 0 {
		return
	}
	if l.unused == nil {
		l.unused = time.AfterFunc(loansKept, l.expire)
	} else {
		l.unused.Reset(loansKept)
	}
}

// expire gives memory back that nobody has needed for a while.
func (l *loans) expire() {
	l.mu.Lock()
	var free []*loan
	if l.out == 0 { // Else they are being used again.
		free, l.free = l.free, nil
	}
	l.mu.Unlock()
	background.Quietly(func() { closeAll(free) })
}

// close gives back what is free, at once.
func (l *loans) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unused != nil {
		l.unused.Stop()
	}
	closeAll(l.free)
	l.free = nil
}

func closeAll(loans []*loan) {
	for _, one := range loans {
		_ = one.memory.Close()
	}
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
