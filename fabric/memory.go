package fabric

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Memory is memory that another process can map, too: an anonymous file, or a
// part of a named one. It lies outside the Go heap.
type Memory struct {
	file   *os.File
	off    int64
	data   []byte
	whole  mapping
	closed atomic.Bool
}

// NewMemory makes zeroed memory. It can never shrink, so a NIC can trust its size.
func NewMemory(bytes int) (*Memory, error) {
	bytes, err := wholePages(bytes)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("ostro-fabric", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("fabric: create memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), "memory")
	if err := sealAt(fd, bytes); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("fabric: create %d bytes of memory: %w", bytes, err)
	}
	m, err := mapOwned(file, 0, bytes)
	if err != nil {
		_ = file.Close()
	}
	return m, err
}

func sealAt(fd, bytes int) error {
	if err := unix.Ftruncate(fd, int64(bytes)); err != nil {
		return err
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	return err
}

// MapFile maps a part of a file that begins at a page border. The file keeps
// what lands there when every process dies; FLUSH with Persist is for the loss
// of power. The caller may close its own file.
func MapFile(f *os.File, off int64, bytes int) (*Memory, error) {
	if off%int64(os.Getpagesize()) != 0 {
		return nil, fmt.Errorf("fabric: map %s at %d: not at a page border", f.Name(), off)
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("fabric: map %s: %w", f.Name(), err)
	}
	file := os.NewFile(uintptr(fd), f.Name())
	m, err := mapOwned(file, off, bytes)
	if err != nil {
		_ = file.Close()
	}
	return m, err
}

func mapOwned(file *os.File, off int64, bytes int) (*Memory, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("fabric: map %d bytes of %s", bytes, file.Name())
	}
	st, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("fabric: map %s: %w", file.Name(), err)
	}
	if off < 0 || off > st.Size() || st.Size()-off < int64(bytes) {
		return nil, fmt.Errorf("fabric: map %d bytes at %d of %s, which has %d", bytes, off, file.Name(), st.Size())
	}
	whole, data, err := mapShared(int(file.Fd()), off, bytes)
	if err != nil {
		return nil, fmt.Errorf("fabric: map %d bytes of %s: %w", bytes, file.Name(), err)
	}
	return &Memory{file: file, off: off, data: data, whole: whole}, nil
}

func wholePages(bytes int) (int, error) {
	if bytes <= 0 {
		return 0, errors.New("fabric: memory needs a positive size")
	}
	page := os.Getpagesize()
	return (bytes + page - 1) &^ (page - 1), nil
}

// Bytes is the caller's mapping. A NIC writes there at any time.
func (m *Memory) Bytes() []byte { return m.data }

// File and Offset tell where the memory comes from, for a NIC to map it.
func (m *Memory) File() *os.File { return m.file }

// Offset is where in its file the memory begins.
func (m *Memory) Offset() int64 { return m.off }

// Close gives the caller's mapping back. Regions made of it stay until they are
// revoked.
func (m *Memory) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	err := m.whole.unmap()
	m.data = nil
	return errors.Join(err, m.file.Close())
}

// Sealed tells whether nobody can shrink the file under the mapping.
func Sealed(f *os.File) bool {
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	return err == nil && seals&unix.F_SEAL_SHRINK != 0
}
