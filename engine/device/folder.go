package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Folder keeps objects as files below a directory, which may be shared by several
// machines. It is our own instead of gocloud's fileblob for two promises that the
// latter does not make: PutNew is atomic among processes, and what was written is
// synced.
type Folder struct{ root string }

var _ Objects = (*Folder)(nil)

// abandonedAfter is the age at which an unfinished write has surely no writer.
const abandonedAfter = 24 * time.Hour

func openFolder(_ context.Context, u *url.URL) (Objects, error) {
	if u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) {
		return nil, fmt.Errorf("a folder is written file:///absolute/path")
	}
	return OpenFolder(u.Path)
}

// OpenFolder creates the directory where needed.
func OpenFolder(root string) (*Folder, error) {
	f := &Folder{root: filepath.Clean(root)}
	if err := f.makeDir(f.root); err != nil {
		return nil, f.explain("create", f.root, err)
	}
	if err := f.sweep(time.Now().Add(-abandonedAfter)); err != nil {
		return nil, f.explain("list", f.root, err)
	}
	return f, nil
}

// Put renames a synced file into place.
func (f *Folder) Put(ctx context.Context, key string, r io.ReaderAt, size int64, sum Checksum) error {
	content := &contextReader{ctx: ctx, r: io.NewSectionReader(r, 0, size)}
	return f.write(key, content, sum.CRC, os.Rename)
}

// PutNew gives a synced file its second name, which fails if that name is taken,
// also on NFS.
func (f *Folder) PutNew(ctx context.Context, key string, data []byte) error {
	content := &contextReader{ctx: ctx, r: bytes.NewReader(data)}
	return f.write(key, content, crc32.Checksum(data, castagnoli), linkNew)
}

// write makes a synced temporary file and lets publish give it its name.
func (f *Folder) write(key string, r io.Reader, crc uint32, publish func(from, to string) error) error {
	path := f.path(key)
	dir := filepath.Dir(path)
	if err := f.makeDir(dir); err != nil {
		return f.explain("create", dir, err)
	}
	temp, err := os.CreateTemp(dir, filepath.Base(path)+".*"+TempSuffix)
	if err != nil {
		return f.explain("create", path, err)
	}
	defer os.Remove(temp.Name()) // It is gone already if all went well.
	err = fill(temp, r, crc)
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = publish(temp.Name(), path)
	}
	if err != nil {
		return f.explain("write", path, err)
	}
	if err := syncDir(dir); err != nil {
		return f.explain("sync directory", dir, err)
	}
	return nil
}

// fill copies r and refuses to go on with other bytes than crc says.
func fill(to *os.File, r io.Reader, crc uint32) error {
	sum := crc32.New(castagnoli)
	if _, err := io.Copy(io.MultiWriter(to, sum), r); err != nil {
		return err
	}
	if got := sum.Sum32(); got != crc {
		return fmt.Errorf("%w: the bytes have checksum %08x, not %08x", ErrCorrupt, got, crc)
	}
	return to.Sync()
}

// linkNew falls back on a rename that does not replace, for file systems without
// hard links. Where neither works there is no safe way, and the error says so.
func linkNew(from, to string) error {
	err := os.Link(from, to)
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EMLINK) {
		return err
	}
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
}

// ReadAt reads a part of a file.
func (f *Folder) ReadAt(ctx context.Context, key string, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	file, err := os.Open(f.path(key))
	if err != nil {
		return 0, f.explain("read", f.path(key), err)
	}
	defer file.Close()
	n, err := file.ReadAt(p, off)
	if err != nil && !isEOF(err) {
		err = f.explain("read", f.path(key), err)
	}
	return n, err
}

// Stat reads the whole file for its checksum: it tells what is there, not what
// somebody once claimed.
func (f *Folder) Stat(ctx context.Context, key string) (ObjectInfo, error) {
	file, err := os.Open(f.path(key))
	if err != nil {
		return ObjectInfo{}, f.explain("read", f.path(key), err)
	}
	defer file.Close()
	sum := crc32.New(castagnoli)
	n, err := io.Copy(sum, &contextReader{ctx: ctx, r: file})
	if err != nil {
		return ObjectInfo{}, f.explain("read", f.path(key), err)
	}
	return ObjectInfo{Bytes: n, CRC: sum.Sum32(), HasCRC: true}, nil
}

// List walks the directory that the prefix lies in.
func (f *Folder) List(ctx context.Context, prefix string) ([]string, error) {
	var keys []string
	start := f.root
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		start = f.path(prefix[:i])
	}
	err := f.walk(start, func(path string, _ fs.DirEntry) error {
		key := filepath.ToSlash(strings.TrimPrefix(path, f.root+string(filepath.Separator)))
		if strings.HasPrefix(key, prefix) && !strings.HasSuffix(key, TempSuffix) {
			keys = append(keys, key)
		}
		return ctx.Err()
	})
	return keys, err
}

// Delete removes a file durably.
func (f *Folder) Delete(_ context.Context, key string) error {
	path := f.path(key)
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return f.explain("remove", path, err)
	}
	return nil
}

// Retryable is for shared file systems whose server is away for a moment.
func (f *Folder) Retryable(err error) bool {
	for _, passing := range []error{unix.EIO, unix.ESTALE, unix.ETIMEDOUT, unix.EAGAIN, unix.EINTR} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// Close has nothing to do.
func (f *Folder) Close() error { return nil }

func (f *Folder) path(key string) string { return filepath.Join(f.root, filepath.FromSlash(key)) }

// makeDir creates dir and its missing parents and syncs the parents of what it
// created.
func (f *Folder) makeDir(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		if err := f.makeDir(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o755)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// sweep removes unfinished writes that are older than limit.
func (f *Folder) sweep(limit time.Time) error {
	return f.walk(f.root, func(path string, e fs.DirEntry) error {
		if !strings.HasSuffix(path, TempSuffix) {
			return nil
		}
		if info, err := e.Info(); err == nil && info.ModTime().Before(limit) {
			_ = os.Remove(path)
		}
		return nil
	})
}

// walk visits the files below dir. What is missing or vanishes meanwhile is not
// visited.
func (f *Folder) walk(dir string, visit func(path string, e fs.DirEntry) error) error {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || e.IsDir():
			return err
		}
		return visit(path, e)
	})
	if err != nil {
		return f.explain("list", dir, err)
	}
	return nil
}

func (f *Folder) explain(act, path string, err error) error {
	switch {
	case isFull(err):
		return fmt.Errorf("%s %s: %w on %s: free space there (%w)", act, path, ErrFull, f.root, cause(err))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s %s: %w: give this user read and write access to %s", act, path, cause(err), f.root)
	default:
		return fmt.Errorf("%s %s: %w", act, path, cause(err))
	}
}

// contextReader ends with the context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
