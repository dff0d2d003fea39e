package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// dataDir is a data directory as its files show it, without a store. It only
// reads; repairs are in repair.go.
type dataDir struct {
	path     string
	segments []segmentFile // by id
	strays   []string      // files that no store of this version puts there
	temps    []string      // unfinished writes; harmless
	held     bool          // no server can use it
}

// segmentFile is one file of DIR/segments.
type segmentFile struct {
	id    record.SegmentID
	path  string
	bytes int64
}

const quarantineFolder = "quarantine"

// openDataDir lists what is there.
func openDataDir(path string) (*dataDir, error) {
	d := &dataDir{path: path}
	entries, err := os.ReadDir(filepath.Join(path, device.SegmentsDir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usagef("%s is not a data directory: it has no folder called %s", path, device.SegmentsDir)
	case err != nil:
		return nil, fmt.Errorf("list segments: %w", err)
	}
	for _, e := range entries {
		if err := d.place(e); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(d.segments, func(a, b segmentFile) int { return cmp.Compare(a.id, b.id) })
	tops, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("list the data directory: %w", err)
	}
	for _, e := range tops {
		if strings.HasSuffix(e.Name(), device.TempSuffix) {
			d.temps = append(d.temps, filepath.Join(path, e.Name()))
		}
	}
	return d, nil
}

// place sorts one file of the segments folder.
func (d *dataDir) place(e fs.DirEntry) error {
	path := filepath.Join(d.path, device.SegmentsDir, e.Name())
	id, ok := device.ParseSegmentName(e.Name())
	switch {
	case strings.HasSuffix(e.Name(), device.TempSuffix):
		d.temps = append(d.temps, path)
		return nil
	case !ok || !e.Type().IsRegular():
		d.strays = append(d.strays, path)
		return nil
	}
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // A running server cleaned it away.
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	d.segments = append(d.segments, segmentFile{id: id, path: path, bytes: info.Size()})
	return nil
}

// totalBytes is the size of all segments.
func (d *dataDir) totalBytes() (sum int64) {
	for _, s := range d.segments {
		sum += s.bytes
	}
	return sum
}

// inUse tells which process has the directory; nothing if none does.
func (d *dataDir) inUse() string {
	f, err := os.Open(filepath.Join(d.path, device.LockName))
	if err != nil {
		return ""
	}
	defer f.Close() // which also gives up the lock
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return ""
	}
	var text [20]byte
	n, _ := f.Read(text[:])
	return "process " + cmp.Or(strings.TrimSpace(string(text[:n])), "unknown")
}

// meta reads what the store has beside its segments.
func (d *dataDir) meta() device.MetaDir { return device.MetaDir(d.path) }

// snapshotWhole tells whether the snapshot of the index, if there is one, is of use.
func (d *dataDir) snapshotWhole() error {
	b, err := d.meta().ReadMeta(store.SnapshotMeta)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("read the snapshot of the index: %w", err)
	}
	if err := store.CheckSnapshot(b); err != nil {
		return fmt.Errorf("the snapshot of the index is of no use: %w", err)
	}
	return nil
}
