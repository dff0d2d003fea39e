package device

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// WriteMeta replaces metadata.
func (d *Disk) WriteMeta(name string, data []byte) error {
	return writeMeta(d, name, data)
}

// writeMeta replaces metadata by way of a stream of one write.
func writeMeta(d Device, name string, data []byte) error {
	s, err := d.CreateStream(name)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Write(data); err != nil {
		return err
	}
	return s.Commit()
}

// ReadMeta reads the whole of the named metadata.
func (d *Disk) ReadMeta(name string) ([]byte, error) {
	path, err := d.metaPath(name)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, d.explain("read", path, err)
	}
	return data, nil
}

// RemoveMeta deletes the named metadata.
func (d *Disk) RemoveMeta(name string) error {
	path, err := d.metaPath(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return d.explain("remove", path, err)
	}
	if err := syncDir(d.dir); err != nil {
		return d.explain("sync directory", d.dir, err)
	}
	return nil
}

// OpenStream reads the named metadata piece by piece. A reader keeps what it
// opened even if the name is replaced meanwhile.
func (d *Disk) OpenStream(name string) (io.ReadCloser, error) {
	path, err := d.metaPath(name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, d.explain("open", path, err)
	}
	return f, nil
}

// CreateStream starts a replacement of the named metadata.
func (d *Disk) CreateStream(name string) (Stream, error) {
	path, err := d.metaPath(name)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(d.dir, name+".*"+TempSuffix)
	if err != nil {
		return nil, d.explain("create", path, err)
	}
	return &diskStream{disk: d, f: f, path: path}, nil
}

func (d *Disk) metaPath(name string) (string, error) {
	if err := checkMetaName(name); err != nil {
		return "", err
	}
	return filepath.Join(d.dir, name), nil
}

// checkMetaName keeps metadata apart from what the device itself puts there.
func checkMetaName(name string) error {
	switch {
	case name == "", name == ".", name == "..", name == SegmentsDir, name == LockName,
		len(name) > 128, strings.ContainsAny(name, "/\\*\x00"), strings.HasSuffix(name, TempSuffix):
		return fmt.Errorf("metadata name %q: a plain file name is needed, other than %s, %s and *%s",
			name, SegmentsDir, LockName, TempSuffix)
	}
	return nil
}

// diskStream is a temporary file until Commit renames it. A write that failed
// makes Commit fail.
type diskStream struct {
	disk *Disk
	path string

	mu     sync.Mutex
	f      *os.File // nil once committed or aborted
	failed error
}

func (s *diskStream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f == nil {
		return 0, fmt.Errorf("write %s: %w", s.path, errClosed)
	}
	n, err := s.f.Write(p)
	if err != nil {
		s.failed = s.disk.explain("write", s.path, err)
	}
	return n, s.failed
}

func (s *diskStream) Commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f == nil {
		return fmt.Errorf("commit %s: %w", s.path, errClosed)
	}
	f := s.f
	s.f = nil
	err := s.failed
	if err == nil {
		err = s.publish(f)
	} else {
		_ = os.Remove(f.Name())
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// publish renames only what is on the medium: a crash shows the old bytes or all
// of the new ones.
func (s *diskStream) publish(f *os.File) error {
	err := f.Sync()
	if err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return s.disk.explain("replace", s.path, err)
	}
	if err := syncDir(s.disk.dir); err != nil {
		return s.disk.explain("sync directory", s.disk.dir, err)
	}
	return nil
}

func (s *diskStream) Abort() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f == nil {
		return nil
	}
	f := s.f
	s.f = nil
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (s *diskStream) Close() error { return s.Abort() }

// Lock takes an advisory lock on DIR/LOCK, which the system drops when the
// process dies, and then removes unfinished writes.
func (d *Disk) Lock() (release func(), err error) {
	path := filepath.Join(d.dir, LockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, d.explain("lock", path, err)
	}
	if err := onFd(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) }); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is %w by %s: stop that one first or choose another directory", d.dir, ErrLocked, owner(f))
		}
		return nil, d.explain("lock", path, err)
	}
	if err := d.sweep(); err != nil {
		_ = f.Close()
		return nil, d.explain("lock", path, err)
	}
	_ = writeOwner(f) // It is only for the error of whoever comes second: a full disk must not keep us out.
	return sync.OnceFunc(func() { _ = f.Close() }), nil
}

// owner tells who holds the lock, as far as the file knows.
func owner(f *os.File) string {
	data := make([]byte, 20)
	n, _ := f.ReadAt(data, 0)
	if pid, err := strconv.Atoi(strings.TrimSpace(string(data[:n]))); err == nil {
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}

func writeOwner(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// sweep removes temporary files. Only the holder of the lock may: they are all of
// dead processes then.
func (d *Disk) sweep() error {
	for _, dir := range []string{d.dir, d.segments} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), TempSuffix) {
				continue
			}
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
