package replica

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const tmpSuffix = ".tmp"

// replaceFile stores a small file: after it the whole content is there, or the
// whole one before, whatever dies.
func replaceFile(path string, content []byte) error {
	tmp := path + tmpSuffix
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = syncFile(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return syncDir(filepath.Dir(path))
}

func syncFile(f *os.File) error {
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", f.Name(), err)
	}
	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// isFull tells whether the disk has no room.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// savings is a file that is given up when the disk is full, so that what must
// be remembered even then has room.
type savings struct {
	path string
	mu   sync.Mutex // a file that is open when it is removed keeps its room
}

const savingsBytes = 256 << 10

// put sets the file up, if it is not there and there is room.
func (s *savings) put() {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	if reserve(f, savingsBytes) != nil {
		_ = os.Remove(s.path)
	}
	_ = f.Close()
}

// spend makes room; false if there is nothing left.
func (s *savings) spend() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return os.Remove(s.path) == nil
}

// measureFlush tells how many bytes a second this disk takes to be safe.
func measureFlush(dir string) (bytesPerSecond int64, err error) {
	const bytes, step = 16 << 20, 1 << 20
	f, err := os.CreateTemp(dir, "probe-*"+tmpSuffix)
	if err != nil {
		return 0, fmt.Errorf("measure the disk: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	piece := make([]byte, step)
	for i := range piece {
		piece[i] = byte(i * 7)
	}
	begin := time.Now()
	for range bytes / step {
		if _, err := f.Write(piece); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
	}
	if err := syncFile(f); err != nil {
		return 0, fmt.Errorf("measure the disk: %w", err)
	}
	return int64(bytes / max(time.Since(begin).Seconds(), 1e-6)), nil
}
