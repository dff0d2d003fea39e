package device_test

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mincore tells which pages of a mapping are in memory; x/sys has no wrapper.
func mincore(m, pages []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE,
		uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&pages[0])))
	if errno != 0 {
		return errno
	}
	return nil
}
