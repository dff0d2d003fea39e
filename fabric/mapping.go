package fabric

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// largePage is what one entry of a page table can map at once, if the page cache
// has it in one piece.
const largePage = 2 << 20

// mapping is a part of the address space.
type mapping struct {
	at    unsafe.Pointer
	bytes uintptr
}

func (m mapping) unmap() error { return unix.MunmapPtr(m.at, m.bytes) }

// mapShared maps a part of a file for reading and writing. Large ones lie in memory as they do in the
// file, from the border of a large page on, which is why the mapping may begin before data: only so can a
// large page be mapped by one fault instead of 512.
func mapShared(fd int, off int64, bytes int) (whole mapping, data []byte, err error) {
	const protection = unix.PROT_READ | unix.PROT_WRITE
	if bytes < largePage {
		at, err := unix.MmapPtr(fd, off, nil, uintptr(bytes), protection, unix.MAP_SHARED)
		if err != nil {
			return mapping{}, nil, err
		}
		return mapping{at, uintptr(bytes)}, unsafe.Slice((*byte)(at), bytes), nil
	}
	lead := uintptr(off % largePage)
	if whole, err = reserveAligned(lead + uintptr(bytes)); err != nil {
		return mapping{}, nil, err
	}
	if _, err := unix.MmapPtr(fd, off-int64(lead), whole.at, whole.bytes, protection, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
		_ = whole.unmap()
		return mapping{}, nil, err
	}
	return whole, unsafe.Slice((*byte)(unsafe.Add(whole.at, lead)), bytes), nil
}

// reserveAligned takes addresses from the border of a large page on. Nothing lies there yet.
func reserveAligned(bytes uintptr) (mapping, error) {
	at, err := unix.MmapPtr(-1, 0, nil, bytes+largePage, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return mapping{}, err
	}
	skip := (largePage - uintptr(at)%largePage) % largePage
	page := uintptr(unix.Getpagesize())
	end := (skip + bytes + page - 1) &^ (page - 1)
	if skip > 0 {
		_ = mapping{at, skip}.unmap()
	}
	if end < bytes+largePage {
		_ = mapping{unsafe.Add(at, end), bytes + largePage - end}.unmap()
	}
	return mapping{unsafe.Add(at, skip), bytes}, nil
}

// PreferLarge asks for large pages where the file's system has them. Then whoever stores a byte makes two
// MiB dirty: it is for memory that is filled and seldom synced.
func (m *Memory) PreferLarge() {
	if m.whole.bytes >= largePage {
		_ = unix.Madvise(unsafe.Slice((*byte)(m.whole.at), m.whole.bytes), unix.MADV_HUGEPAGE)
	}
}
