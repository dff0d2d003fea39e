package extension

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// image is an instance's memory and variables as they are after its initialization, from which instances begin, and
// begin anew. What is not zero in a small one is copied. A large one is a file in memory that instances map: they share
// all pages that they do not change.
type image struct {
	bytes  int
	pieces []piece
	filed  bool // it is a file
	fd     int  // of that, until it is closed; -1: there is none. Guarded by the module's imaging
	states []uint64
	area   uint32 // where it is
}

// piece is memory that is not all zero.
type piece struct {
	at    int
	bytes []byte
}

// copiedMost is how much of an image is copied at most.
const copiedMost = 64 << 10

func newImage(in *instance) (*image, error) {
	im := &image{bytes: len(in.mem.buf), fd: -1, area: in.area}
	for _, g := range in.variables() {
		im.states = append(im.states, g.Get())
	}
	sum := 0
	for at, end := nextPiece(in.mem.buf, 0); at < end; at, end = nextPiece(in.mem.buf, end) {
		im.pieces = append(im.pieces, piece{at, in.mem.buf[at:end]})
		sum += end - at
	}
	if sum > copiedMost {
		err := im.file()
		return im, err
	}
	for i := range im.pieces {
		p := &im.pieces[i]
		p.bytes = append(make([]byte, 0, len(p.bytes)), p.bytes...)
	}
	return im, nil
}

// unit is what memory is looked at by: parts of it that are all zero are not kept.
const unit = 512

// nextPiece finds the next units that are not all zero, from one on.
func nextPiece(b []byte, from int) (at, end int) {
	for at = from; at < len(b) && zero(b[at:at+unit]); at += unit {
	}
	for end = at; end < len(b) && !zero(b[end:end+unit]); end += unit {
	}
	return at, end
}

func zero(b []byte) bool {
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), unit/8)
	for _, w := range words {
		if w != 0 {
			return false
		}
	}
	return true
}

// file writes the pieces to where instances map them from.
func (im *image) file() error {
	fd, err := unix.MemfdCreate("ostro-function", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("keep the first memory of a function: %w", err)
	}
	im.fd, im.filed = fd, true
	err = unix.Ftruncate(fd, int64(im.bytes))
	for _, p := range im.pieces {
		for at, left := p.at, p.bytes; err == nil && len(left) > 0; {
			var n int
			n, err = unix.Pwrite(fd, left, int64(at))
			at, left = at+n, left[n:]
		}
	}
	im.pieces = nil
	if err != nil {
		im.close()
		return fmt.Errorf("keep the first memory of a function: %w", err)
	}
	return nil
}

func (im *image) close() {
	if im != nil && im.fd >= 0 {
		_ = unix.Close(im.fd)
		im.fd = -1
	}
}

// apply gives a new instance the image's memory.
func (im *image) apply(in *instance) error {
	if lacks := im.bytes - len(in.mem.buf); lacks > 0 {
		if _, ok := in.mod.Memory().Grow(uint32(lacks / 65536)); !ok {
			return fmt.Errorf("a function's memory cannot grow to %d bytes again", im.bytes)
		}
	}
	if !im.reset(in) {
		return fmt.Errorf("a function's first memory of %d bytes cannot be mapped", im.bytes)
	}
	return nil
}

// reset makes a used instance new. It reports false for one that cannot be: its memory has grown.
func (im *image) reset(in *instance) bool {
	if len(in.mem.buf) != im.bytes {
		return false
	}
	if im.bytes > 0 && !im.clear(in) {
		return false
	}
	for _, p := range im.pieces {
		copy(in.mem.buf[p.at:], p.bytes)
	}
	for i, g := range in.variables() {
		g.Set(im.states[i])
	}
	in.area = im.area
	return true
}

// clear drops all pages that the instance has written.
func (im *image) clear(in *instance) bool {
	if im.filed && !in.mapped {
		_, err := unix.MmapPtr(im.fd, 0, unsafe.Pointer(&in.mem.all[0]), uintptr(im.bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
		in.mapped = err == nil
		return in.mapped
	}
	return unix.Madvise(in.mem.buf, unix.MADV_DONTNEED) == nil
}
