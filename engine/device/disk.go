package device

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/record"
)

// Names in the directory of a Disk.
const (
	SegmentsDir   = "segments"
	SegmentSuffix = ".seg"
	TempSuffix    = ".tmp" // an unfinished write; Lock removes it
	LockName      = "LOCK"
)

// Disk is a directory of the local file system:
//
//	DIR/LOCK                          taken by the process that uses DIR
//	DIR/NAME                          metadata
//	DIR/segments/0123456789abcdef.seg
//	*.tmp                             unfinished writes
//
// Whatever must appear whole is written to a .tmp file, synced, renamed, and the
// directory synced.
type Disk struct {
	dir      string
	segments string

	// The two system calls that tests make fail.
	reserve  func(f *os.File, bytes int64) error
	datasync func(fd int) error

	failures failures
}

var _ Device = (*Disk)(nil)

// OpenDisk opens dir and creates it where needed, for the owner only.
func OpenDisk(dir string) (*Disk, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open data directory %s: %w", dir, err)
	}
	d := &Disk{dir: abs, segments: filepath.Join(abs, SegmentsDir), reserve: reserve, datasync: unix.Fdatasync}
	if err := os.MkdirAll(d.segments, 0o700); err != nil {
		return nil, d.explain("create data directory", d.segments, err)
	}
	for _, dir := range []string{filepath.Dir(d.dir), d.dir} {
		if err := syncDir(dir); err != nil && !errors.Is(err, fs.ErrPermission) {
			return nil, d.explain("sync directory", dir, err)
		}
	}
	return d, nil
}

// Dir is the directory's absolute path.
func (d *Disk) Dir() string { return d.dir }

// Create allocates the segment under a temporary name and then renames it: a
// crash leaves no segment of wrong size. Then it writes zeros, unsynced: that fills
// the page cache with large pages, of which stores through the mapping dirty many
// at once. Page by page, as faults would fill it, one store in thirty takes a
// microsecond and more (BenchmarkStore). If the segment is full before the system
// writes it back, the zeros never reach the medium.
func (d *Disk) Create(id record.SegmentID, bytes int) (File, error) {
	path := d.segmentPath(id)
	if bytes <= 0 {
		return nil, fmt.Errorf("create segment %s: %d bytes is no size for a segment", path, bytes)
	}
	f, err := os.CreateTemp(d.segments, filepath.Base(path)+".*"+TempSuffix)
	if err != nil {
		return nil, d.explain("create segment", path, err)
	}
	if err := d.allocate(f, int64(bytes), path); err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
		return nil, d.explain("create segment", path, err)
	}
	if err := syncDir(d.segments); err != nil {
		_ = f.Close()
		_ = os.Remove(path)
		return nil, d.explain("sync directory", d.segments, err)
	}
	df := d.file(f, id, path, int64(bytes))
	df.fresh = true
	return df, nil
}

// allocate gives f its space and then its name.
func (d *Disk) allocate(f *os.File, bytes int64, path string) error {
	if err := d.reserve(f, bytes); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return renameNew(f.Name(), path)
}

// Open opens an existing segment.
func (d *Disk) Open(id record.SegmentID) (File, error) {
	path := d.segmentPath(id)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, d.explain("open segment", path, err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, d.explain("open segment", path, err)
	}
	return d.file(f, id, path, info.Size()), nil
}

// List names the segments; other files are ignored.
func (d *Disk) List() ([]record.SegmentID, error) {
	entries, err := os.ReadDir(d.segments)
	if err != nil {
		return nil, d.explain("list segments", d.segments, err)
	}
	ids := make([]record.SegmentID, 0, len(entries))
	for _, e := range entries {
		if id, ok := ParseSegmentName(e.Name()); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Remove deletes a segment and syncs the directory: a segment that came back
// after a crash would bring deleted records back.
func (d *Disk) Remove(id record.SegmentID) error {
	path := d.segmentPath(id)
	if err := os.Remove(path); err != nil {
		return d.explain("remove segment", path, err)
	}
	d.failures.forget(id)
	if err := syncDir(d.segments); err != nil {
		return d.explain("sync directory", d.segments, err)
	}
	return nil
}

// Usage counts the blocks allocated under the directory, and what the file
// system would still give to this user.
func (d *Disk) Usage() (bytes, free int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		return 0, 0, d.explain("ask for free space of", d.dir, err)
	}
	for _, dir := range []string{d.dir, d.segments} {
		n, err := allocatedIn(dir)
		if err != nil {
			return 0, 0, d.explain("sum up", dir, err)
		}
		bytes += n
	}
	return bytes, int64(st.Bavail) * st.Bsize, nil
}

func (d *Disk) segmentPath(id record.SegmentID) string {
	return filepath.Join(d.segments, segmentName(id))
}

// explain names the act, the path and, where the operator can help, what to do.
func (d *Disk) explain(act, path string, err error) error {
	switch {
	case isFull(err):
		return fmt.Errorf("%s %s: %w on %s: free space or set --disk-limit (%w)", act, path, ErrFull, d.dir, cause(err))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s %s: %w: give this user read and write access to %s", act, path, cause(err), d.dir)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%s %s: %w: mount it writable, or choose another data directory than %s", act, path, cause(err), d.dir)
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%s %s: %w: raise the limit of open files (ulimit -n)", act, path, cause(err))
	default:
		return fmt.Errorf("%s %s: %w", act, path, cause(err))
	}
}

// cause strips the path that the os package put around the system's error, for
// explain names it already.
func cause(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	if l := (*os.LinkError)(nil); errors.As(err, &l) {
		return l.Err
	}
	return err
}

func isFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

func segmentName(id record.SegmentID) string {
	return fmt.Sprintf("%016x%s", uint64(id), SegmentSuffix)
}

// ParseSegmentName accepts exactly what segmentName makes.
func ParseSegmentName(name string) (record.SegmentID, bool) {
	digits, ok := strings.CutSuffix(name, SegmentSuffix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	id := record.SegmentID(n)
	return id, err == nil && segmentName(id) == name
}
