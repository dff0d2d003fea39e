package device

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/internal/background"
)

// onFd runs act on f's descriptor, which cannot be closed meanwhile, again if a
// signal interrupts it.
func onFd(f *os.File, act func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var actErr error
	err = raw.Control(func(fd uintptr) {
		actErr = unix.EINTR
		for actErr == unix.EINTR {
			actErr = act(int(fd))
		}
	})
	if err != nil {
		return errClosed // The only way that Control fails.
	}
	return actErr
}

// reserve allocates bytes of zeros. File systems without fallocate get them written.
func reserve(f *os.File, bytes int64) error {
	err := onFd(f, func(fd int) error { return unix.Fallocate(fd, 0, 0, bytes) })
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	return writeZeros(f, bytes, func() {})
}

var zeros [background.Piece]byte

func writeZeros(f *os.File, bytes int64, between func()) error {
	for off := int64(0); off < bytes; {
		n, err := f.WriteAt(zeros[:min(int64(len(zeros)), bytes-off)], off)
		if err != nil {
			return err
		}
		off += int64(n)
		between()
	}
	return nil
}

// renameNew renames but never replaces. Where the system cannot promise that, a
// look before has to do: ids are never reused, so only a bug could collide.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// allocatedIn sums the blocks of the files right inside dir. Files that vanish
// meanwhile count nothing.
func allocatedIn(dir string) (int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
			continue
		}
		if err != nil {
			return 0, err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += st.Blocks * 512
		} else {
			sum += info.Size()
		}
	}
	return sum, nil
}

// mapFile maps the whole file and brings every page into the page table.
func mapFile(f *os.File, size int64, writable bool) ([]byte, error) {
	m, err := mapOnly(f, size, writable)
	if err != nil {
		return nil, err
	}
	if err := populate(m, writable); err != nil {
		_ = unix.Munmap(m)
		return nil, err
	}
	return m, nil
}

func mapOnly(f *os.File, size int64, writable bool) (m []byte, err error) {
	protection := unix.PROT_READ
	if writable {
		protection |= unix.PROT_WRITE
	}
	err = onFd(f, func(fd int) (err error) {
		m, err = unix.Mmap(fd, 0, int(size), protection, unix.MAP_SHARED)
		return err
	})
	return m, err
}

// populateStep bounds one system call, for the kernel holds the address space's
// lock during it.
const populateStep = background.Piece

// populate faults all pages in. Kernels before 5.14 cannot be asked to, so the
// pages are touched.
func populate(m []byte, writable bool) error {
	advice := unix.MADV_POPULATE_READ
	if writable {
		advice = unix.MADV_POPULATE_WRITE
	}
	for off := 0; off < len(m); off += populateStep {
		err := madvise(m[off:min(off+populateStep, len(m))], advice)
		switch {
		case err == nil:
		case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS):
			touch(m[off:], writable)
			return nil
		case errors.Is(err, unix.EFAULT) || errors.Is(err, unix.EHWPOISON):
			return fmt.Errorf("the medium does not give the bytes near offset %d: %w", off, unix.EIO)
		default:
			return err
		}
	}
	return nil
}

func madvise(m []byte, advice int) error {
	for {
		err := unix.Madvise(m, advice)
		if err != unix.EINTR && err != unix.EAGAIN {
			return err
		}
	}
}

// touch reads one word of each page, or writes back what it finds there.
func touch(m []byte, writable bool) {
	for off := 0; off < len(m); off += os.Getpagesize() {
		word := (*uint32)(unsafe.Pointer(&m[off]))
		if writable {
			atomic.AddUint32(word, 0)
		} else {
			atomic.LoadUint32(word)
		}
	}
}

// checkRange refuses what does not lie inside a segment.
func checkRange(path string, off int64, n int, size int64) error {
	if off < 0 || n < 0 || int64(n) > size-off {
		return fmt.Errorf("write %s: %d bytes at %d do not lie inside its %d bytes", path, n, off, size)
	}
	return nil
}

// isEOF tells the end of a file from a connection that broke off, whose error also
// wraps io.EOF.
func isEOF(err error) bool { return err == io.EOF }
