package index

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// adviseHuge asks for huge pages and has them filled in now, so that page
// faults do not fall into a split, for which writers wait. Both are wishes: a
// kernel that refuses them costs speed only.
func adviseHuge(m mapping) {
	b := unsafe.Slice((*byte)(m.base), m.size)
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	_ = unix.Madvise(b, unix.MADV_POPULATE_WRITE)
}
