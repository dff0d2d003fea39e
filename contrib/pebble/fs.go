package ostropebble

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// walFS is the file system that the front end's Pebble lives on. Write-ahead
// logs of its directory go to the replicas, and into memory for Pebble's own
// use of them (a checkpoint copies them). Everything else is on the disk below.
//
//	dir/000012.log   memory, and sink
//	anything else    FS
type walFS struct {
	vfs.FS
	dir  string
	logs vfs.FS // the logs' bytes, in memory
	sink sink
}

// sink takes the bytes of write-ahead logs, in order. Calls come one at a time.
type sink interface {
	// write takes the next bytes of a log; off is how many went before.
	write(log, off uint64, p []byte) error
	// sync returns when all replicas have everything that was written.
	sync() error
}

func newWALFS(dir string, below vfs.FS, s sink) (*walFS, error) {
	f := &walFS{FS: below, dir: filepath.Clean(dir), logs: vfs.NewMem(), sink: s}
	return f, f.logs.MkdirAll(f.dir, 0o755)
}

// log is the number of the write-ahead log of that name, if it is one.
func (f *walFS) log(name string) (uint64, bool) {
	dir, base := filepath.Split(filepath.Clean(name))
	digits, isLog := strings.CutSuffix(base, ".log")
	if !isLog || filepath.Clean(dir) != f.dir {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

// in is the file system where a name is.
func (f *walFS) in(name string) vfs.FS {
	if _, ok := f.log(name); ok {
		return f.logs
	}
	return f.FS
}

func (f *walFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.in(name).Create(name, c)
	if n, ok := f.log(name); ok && err == nil {
		return &walFile{File: file, log: n, sink: f.sink}, nil
	}
	return file, err
}

// ReuseForWrite makes a new log: there is nothing to gain from an old one.
func (f *walFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if _, ok := f.log(name); !ok {
		return f.FS.ReuseForWrite(old, name, c)
	}
	if err := f.in(old).Remove(old); err != nil {
		return nil, err
	}
	return f.Create(name, c)
}

func (f *walFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	return f.in(name).Open(name, o...)
}

func (f *walFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	if _, ok := f.log(name); ok {
		return nil, errors.New("pebble: a replicated write-ahead log cannot be changed in place")
	}
	return f.FS.OpenReadWrite(name, c, o...)
}

func (f *walFS) Stat(name string) (vfs.FileInfo, error) { return f.in(name).Stat(name) }

func (f *walFS) Remove(name string) error { return f.in(name).Remove(name) }

// Link and Rename cannot cross from memory to disk: a log is copied instead
// (vfs.LinkOrCopy), and never renamed.
func (f *walFS) Link(old, name string) error {
	if f.in(old) != f.in(name) {
		return errors.New("pebble: a replicated write-ahead log is in memory and cannot be linked")
	}
	return f.in(old).Link(old, name)
}

func (f *walFS) Rename(old, name string) error {
	if f.in(old) != f.in(name) {
		return errors.New("pebble: a replicated write-ahead log is in memory and cannot be renamed")
	}
	return f.in(old).Rename(old, name)
}

func (f *walFS) List(dir string) ([]string, error) {
	names, err := f.FS.List(dir)
	if err != nil || filepath.Clean(dir) != f.dir {
		return names, err
	}
	logs, err := f.logs.List(f.dir)
	return append(names, logs...), err
}

func (f *walFS) Unwrap() vfs.FS { return f.FS }

// walFile is a write-ahead log. Pebble has one open at a time, and writes it
// from one goroutine.
type walFile struct {
	vfs.File
	log, off uint64
	sink     sink
}

func (f *walFile) Write(p []byte) (int, error) {
	if err := f.sink.write(f.log, f.off, p); err != nil {
		return 0, err
	}
	f.off += uint64(len(p))
	return f.File.Write(p)
}

// Sync is where a commit with pebble.Sync waits.
func (f *walFile) Sync() error     { return f.sink.sync() }
func (f *walFile) SyncData() error { return f.sink.sync() }

func (f *walFile) SyncTo(int64) (bool, error) { return true, f.sink.sync() }

func (f *walFile) Preallocate(int64, int64) error { return nil }
