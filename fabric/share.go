package fabric

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Share is how another process of this machine, and of this user, maps memory that NewShared made: no NIC and no socket
// stands between them. To any other it says nothing.
type Share struct {
	Process int    `json:"process"`
	File    int    `json:"file"`
	Bytes   int    `json:"bytes"` // of the memory, in whole pages
	Mark    []byte `json:"mark"`  // its last bytes, which nobody else's are
}

const markBytes = 16

// memoryName is what the system calls memory of NewMemory.
const memoryName = "/memfd:ostro-fabric"

// NewShared is NewMemory of at least so many bytes with a Share of it. The bytes that follow those hold its mark, and stay as
// they are.
func NewShared(atLeast int) (*Memory, Share, error) {
	m, err := NewMemory(atLeast + markBytes)
	if err != nil {
		return nil, Share{}, err
	}
	s := Share{Process: os.Getpid(), File: int(m.file.Fd()), Bytes: len(m.data), Mark: make([]byte, markBytes)}
	_, _ = rand.Read(s.Mark) // It never fails.
	copy(m.data[len(m.data)-markBytes:], s.Mark)
	return m, s, nil
}

var errNotShared = errors.New("fabric: there is no such memory on this machine")

// OpenShared maps what another process shares. Whoever says that it does may be on another machine, where a process of that
// number is another one: so it is taken only if it is such memory, cannot shrink, and has the mark.
func OpenShared(s Share) (*Memory, error) {
	name := fmt.Sprintf("/proc/%d/fd/%d", s.Process, s.File)
	// Nothing else is opened, for that may have effects, or wait.
	if what, err := os.Readlink(name); err != nil || !strings.HasPrefix(what, memoryName) {
		return nil, errNotShared
	}
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotShared, err)
	}
	m, err := openMarked(f, s)
	if err != nil {
		_ = f.Close()
	}
	return m, err
}

func openMarked(f *os.File, s Share) (*Memory, error) {
	st, err := f.Stat()
	if err != nil || !Sealed(f) || st.Size() != int64(s.Bytes) || s.Bytes < markBytes || len(s.Mark) != markBytes {
		return nil, errNotShared
	}
	m, err := mapOwned(f, 0, s.Bytes)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(m.data[s.Bytes-markBytes:], s.Mark) {
		_ = m.whole.unmap()
		return nil, errNotShared
	}
	return m, nil
}
