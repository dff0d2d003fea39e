package extension

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// image is an instance's memory and variables as they are after its initialization. Instances map it copy-on-write:
// they need no initialization of their own, share all pages that they do not change, and can begin anew.
type image struct {
	fd     int
	bytes  int
	states []uint64
}

func newImage(in *instance) (*image, error) {
	fd, err := unix.MemfdCreate("ostro-function", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("keep the first memory of a function: %w", err)
	}
	im := &image{fd: fd, bytes: len(in.mem.buf)}
	for left := in.mem.buf; len(left) > 0; {
		n, err := unix.Write(fd, left)
		if err != nil {
			im.close()
			return nil, fmt.Errorf("keep the first memory of a function: %w", err)
		}
		left = left[n:]
	}
	for _, g := range in.states {
		im.states = append(im.states, g.Get())
	}
	return im, nil
}

func (im *image) close() { _ = unix.Close(im.fd) }

// apply maps the image over a new instance's memory.
func (im *image) apply(in *instance) error {
	if lacks := im.bytes - len(in.mem.buf); lacks > 0 {
		if _, ok := in.mod.Memory().Grow(uint32(lacks / 65536)); !ok {
			return fmt.Errorf("a function's memory cannot grow to %d bytes again", im.bytes)
		}
	}
	if im.bytes > 0 {
		_, err := unix.MmapPtr(im.fd, 0, unsafe.Pointer(&in.mem.all[0]), uintptr(im.bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
		if err != nil {
			return fmt.Errorf("map the first memory of a function: %w", err)
		}
	}
	im.restore(in)
	return nil
}

// reset makes a used instance new. It reports false for one that cannot be: its memory has grown.
func (im *image) reset(in *instance) bool {
	if len(in.mem.buf) != im.bytes {
		return false
	}
	if im.bytes > 0 && unix.Madvise(in.mem.buf, unix.MADV_DONTNEED) != nil {
		return false
	}
	im.restore(in)
	return true
}

func (im *image) restore(in *instance) {
	for i, g := range in.states {
		g.Set(im.states[i])
	}
}
