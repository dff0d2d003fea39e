package replica

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ostrodb/ostro/internal/background"
)

// bufferPool is the buffers of a backup.
//
//	free ── take ── in use ── release ── dirty ── sweep (zero) ── free
//
// Some are free whenever somebody takes one: quiet goroutines make them ahead.
//
// Invariant: what is free is zero, in memory and, after its header says so, on disk.
type bufferPool struct {
	dir          string
	segmentBytes uint32
	limit        int // buffers in use and dirty at a time

	mu    sync.Mutex
	free  []*buffer
	dirty []*buffer
	busy  int // in use, dirty or being zeroed
	taken time.Time
	next  uint64 // number of the next file
	wake  func() // somebody released one
}

const bufferSuffix = ".buffer"

// openPool finds the buffers of an earlier process. Those in use are returned.
func openPool(dir string, segmentBytes uint32, limit int) (p *bufferPool, used []*buffer, broken []string, err error) {
	p = &bufferPool{dir: dir, segmentBytes: segmentBytes, limit: limit, wake: func() {}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), bufferSuffix)
		number, err := strconv.ParseUint(name, 10, 64)
		if !is || err != nil {
			continue
		}
		p.next = max(p.next, number+1)
		path := filepath.Join(dir, e.Name())
		b, ok, err := openBuffer(path)
		switch {
		case err != nil:
			return nil, nil, nil, fmt.Errorf("open a buffer: %w", err)
		case !ok:
			broken = append(broken, path)
		case b.header.state.inUse():
			p.busy++
			used = append(used, b)
		case b.header.segmentBytes != segmentBytes:
			err = b.discard()
		case b.header.state == bufferFree:
			p.free = append(p.free, b)
		default:
			p.busy++
			p.dirty = append(p.dirty, b)
		}
		if err != nil {
			return nil, nil, nil, err
		}
	}
	return p, used, broken, nil
}

// prepare makes buffers until n are free, as far as the limit allows.
func (p *bufferPool) prepare(n int) error {
	for range n {
		number, lacks := p.lacks(n)
		if !lacks {
			return nil
		}
		b, err := p.create(number, func() {})
		if err != nil {
			return err
		}
		p.add(b)
	}
	return nil
}

// lacks tells whether fewer than n buffers are free and one more may be, and the number of the file to make.
func (p *bufferPool) lacks(n int) (number uint64, lacks bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) >= min(n, p.limit-p.busy) {
		return 0, false
	}
	p.next++
	return p.next - 1, true
}

// add adds a buffer that is free.
func (p *bufferPool) add(b *buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, b)
}

// replenish makes one buffer if fewer than n are free, and tells whether it did. It is for a quiet goroutine.
func (p *bufferPool) replenish(n int, between func()) (more bool) {
	var number uint64
	background.Aloud(func() { number, more = p.lacks(n) })
	if !more {
		return false
	}
	b, err := p.create(number, between)
	if err != nil {
		return false // Who needs one is told why.
	}
	background.Aloud(func() { p.add(b) })
	return true
}

// To make zeroes takes the kernel milliseconds, in which it leaves its core to nobody. So it is done when nobody has taken a
// buffer for a while, as long as some are free: those who take several, a migration say, are busy with other things.
const (
	calmAfter = time.Second
	fewFree   = 2
)

// unrest is how long it is until zeroes may be made; 0: now.
func (p *bufferPool) unrest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < fewFree || 2*p.busy > p.limit {
		return 0
	}
	return max(0, calmAfter-time.Since(p.taken))
}

// take returns a buffer that is zero.
func (p *bufferPool) take() (*buffer, error) {
	p.mu.Lock()
	if p.busy >= p.limit {
		defer p.mu.Unlock()
		return nil, fmt.Errorf("%w: %d buffers are not on disk yet, and that is as many as it can save when the power fails", ErrFull, p.busy)
	}
	p.busy++
	p.taken = time.Now()
	if last := len(p.free) - 1; last >= 0 {
		b := p.free[last]
		p.free = p.free[:last]
		p.mu.Unlock()
		p.wake() // There is to be another one.
		return b, nil
	}
	number := p.next
	p.next++
	p.mu.Unlock()
	var pace background.Pace
	b, err := p.create(number, pace.Rest)
	if err != nil {
		p.mu.Lock()
		p.busy--
		p.mu.Unlock()
	}
	return b, err
}

// create makes the buffer of a number. It may rest between two pieces.
func (p *bufferPool) create(number uint64, between func()) (*buffer, error) {
	b, err := createBuffer(filepath.Join(p.dir, fmt.Sprintf("%06d%s", number, bufferSuffix)), p.segmentBytes, between)
	if isFull(err) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return nil, err
	}
	return b, syncDir(p.dir)
}

// putBack returns a buffer that was taken and not written to.
func (p *bufferPool) putBack(b *buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
	p.free = append(p.free, b)
}

// release gives a buffer to the sweeper. Nobody enters it as a reader any more.
func (p *bufferPool) release(b *buffer) {
	p.mu.Lock()
	p.dirty = append(p.dirty, b)
	p.mu.Unlock()
	p.wake()
}

// sweep zeroes one dirty buffer that nobody reads, or says that there is none. It
// is for a quiet goroutine, which may rest between two pieces.
func (p *bufferPool) sweep(between func()) (more bool, err error) {
	var b *buffer
	background.Aloud(func() { b = p.takeDirty() })
	if b == nil {
		return false, nil
	}
	kept, err := b.clean(p.segmentBytes, p.plenty(), between)
	b.readers.Unlock()
	background.Aloud(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy--
		if kept {
			p.free = append(p.free, b)
		}
	})
	return true, err
}

// takeDirty is a dirty buffer that has no readers, locked against them.
func (p *bufferPool) takeDirty() *buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, b := range p.dirty {
		if b.readers.TryLock() {
			p.dirty = slices.Delete(p.dirty, i, i+1)
			return b
		}
	}
	return nil
}

// keepFree is how many free buffers are kept: a load that needed more is over.
const keepFree = 16

// plenty tells whether no more free buffers are wanted.
func (p *bufferPool) plenty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.free) >= keepFree
}

// clean makes the buffer free, or removes it if it is not wanted or cannot be used
// again.
func (b *buffer) clean(segmentBytes uint32, plenty bool, between func()) (kept bool, err error) {
	if plenty || b.inherited || b.header.segmentBytes != segmentBytes {
		return false, b.discard()
	}
	err = b.store(bufferHeader{state: bufferDirty}, false)
	if err == nil {
		err = b.zero(between)
	}
	if err == nil {
		err = syncFile(b.file) // Zeroes first: the header vouches for them.
	}
	if err == nil {
		err = b.store(bufferHeader{state: bufferFree}, true)
	}
	if err != nil {
		return false, errors.Join(err, b.discard())
	}
	return true, nil
}

// pressed tells whether most buffers are busy.
func (p *bufferPool) pressed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return 2*p.busy > p.limit
}

// scarce tells whether so many buffers are busy that nothing justifies more.
func (p *bufferPool) scarce() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return 4*p.busy >= 3*p.limit
}

// counts tells how many buffers are free, could still be made, and are busy.
func (p *bufferPool) counts() (room, busy int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.limit-p.busy, 0), p.busy
}

// close unmaps what nobody uses.
func (p *bufferPool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, b := range append(p.free, p.dirty...) {
		errs = append(errs, b.unmap())
	}
	p.free, p.dirty = nil, nil
	return errors.Join(errs...)
}
