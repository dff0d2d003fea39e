package hlog

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	hugePageBytes  = 2 << 20
	smallPageBytes = 4 << 10
)

// framePool hands out segment-sized memory outside the Go heap, on huge pages
// where the kernel gives them. Frames are not zeroed when they come back: a
// segment's end is known from its metadata, never from zero bytes in memory.
type framePool struct {
	bytes int
	mu    sync.Mutex
	free  []*frame
	all   map[*frame]struct{}

	promised int // who frames are made ready for; while there are any, none is given back but by put
}

// frame is memory for one segment.
type frame struct {
	bytes []byte // of segment size
	whole []byte // the mapping that holds it
}

func (f *frame) base() unsafe.Pointer { return unsafe.Pointer(&f.bytes[0]) }

func (p *framePool) get() (*frame, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		f := p.free[n-1]
		p.free = p.free[:n-1]
		return f, nil
	}
	f, err := newFrame(p.bytes)
	if err != nil {
		return nil, err
	}
	if p.all == nil {
		p.all = map[*frame]struct{}{}
	}
	p.all[f] = struct{}{}
	return f, nil
}

// prepare makes frames ahead until so many are free. Their memory is at hand then: a first touch costs as much as what is
// copied into it. It stops when more says so.
func (p *framePool) prepare(n int, more func() bool) error {
	for more() {
		p.mu.Lock()
		enough := len(p.free) >= n
		p.mu.Unlock()
		if enough {
			return nil
		}
		f, err := newFrame(p.bytes)
		if err != nil {
			return err
		}
		for at := 0; at < len(f.bytes); at += smallPageBytes {
			f.bytes[at] = 0
		}
		p.mu.Lock()
		if p.all == nil {
			p.all = map[*frame]struct{}{}
		}
		p.all[f] = struct{}{}
		p.free = append(p.free, f)
		p.mu.Unlock()
	}
	return nil
}

// promise has frames that are ready kept until end was called.
func (p *framePool) promise() (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.promised++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.promised--; p.promised == 0 {
			p.trim()
		}
	})
}

// trim gives back what is free beyond the few that are kept. The caller holds mu.
func (p *framePool) trim() {
	for len(p.free) > p.kept() {
		last := len(p.free) - 1
		p.unmap(p.free[last])
		p.free = p.free[:last]
	}
}

// kept is how many free frames are kept. The caller holds mu.
func (p *framePool) kept() int { return max(4, len(p.all)/4) }

// put keeps a few frames for reuse and gives the rest back to the system: what has come and gone may come again, and
// fresh memory costs as much as what is copied into it.
func (p *framePool) put(f *frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < p.kept() {
		p.free = append(p.free, f)
		return
	}
	p.unmap(f)
}

func (p *framePool) unmap(f *frame) {
	delete(p.all, f)
	unix.Munmap(f.whole)
}

func (p *framePool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range p.all {
		p.unmap(f)
	}
	p.free = nil
}

// newFrame maps memory; segments of whole huge pages are aligned to them.
func newFrame(bytes int) (*frame, error) {
	extra := 0
	if bytes%hugePageBytes == 0 {
		extra = hugePageBytes
	}
	whole, err := reserve(bytes + extra)
	if err != nil {
		return nil, err
	}
	start := 0
	if extra > 0 {
		at := uintptr(unsafe.Pointer(&whole[0]))
		start = int((hugePageBytes - at%hugePageBytes) % hugePageBytes)
		// A kernel without huge pages serves small ones: nothing else changes.
		_ = unix.Madvise(whole[start:start+bytes], unix.MADV_HUGEPAGE)
	}
	return &frame{bytes: whole[start : start+bytes], whole: whole}, nil
}
