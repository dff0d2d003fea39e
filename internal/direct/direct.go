// Package direct writes past the system's cache. What is written once, to be read after a death if ever, has no use for a copy in
// memory; and to make that copy, and to have it written, costs three times the processor's time of the writing itself.
package direct

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// block is what places in memory and in files are multiples of, on every device that is known.
	block = 4096
	// piece is how many bytes are written at a time. With 64 KiB it takes twice as long.
	piece = 1 << 20
)

// Write writes the first of b to f at off, and tells how many bytes: as many as can go past the cache, whole blocks, and none
// where the memory, the place or the file system do not allow it. The caller writes the others as usual, and syncs them all.
// Nobody else uses f meanwhile.
func Write(f *os.File, b []byte, off int64) (n int, err error) {
	b = b[:len(b)/block*block]
	if len(b) == 0 || off%block != 0 || uintptr(unsafe.Pointer(&b[0]))%block != 0 {
		return 0, nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	closed := raw.Control(func(fd uintptr) { n, err = write(int(fd), b, off) })
	return n, errors.Join(closed, err)
}

func write(fd int, b []byte, off int64) (n int, err error) {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return 0, os.NewSyscallError("fcntl", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags|unix.O_DIRECT); err != nil {
		return 0, nil // The file system cannot do it.
	}
	defer func() {
		_, end := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags)
		err = errors.Join(err, os.NewSyscallError("fcntl", end))
	}()
	for n < len(b) && n%block == 0 {
		wrote, err := unix.Pwrite(fd, b[n:min(n+piece, len(b))], off+int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EINVAL):
			return n, nil // The device wants other places.
		case err != nil:
			return n, os.NewSyscallError("pwrite", err)
		default:
			n += wrote
		}
	}
	return n, nil
}
