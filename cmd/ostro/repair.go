package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// hold keeps servers away from the directory while it is checked. To write it
// must have it alone, which also removes unfinished files.
func (d *dataDir) hold(alone bool) (release func(), err error) {
	defer func() { d.held = err == nil }()
	if alone {
		disk, err := device.OpenDisk(d.path)
		if err != nil {
			return nil, err
		}
		return disk.Lock()
	}
	f, err := os.Open(filepath.Join(d.path, device.LockName))
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s is in use by %s: stop it first, or use `ostro inspect`, which does not mind", d.path, d.inUse())
	}
	return func() { _ = f.Close() }, nil
}

// repair mends what the findings name, and notes in each what was done. It
// never touches bytes that are whole.
func repair(d *dataDir, s *surveyed, v *verdict, quarantine bool) error {
	if err := s.syncTails(); err != nil {
		return err
	}
	for i := range v.Findings {
		f := &v.Findings[i]
		var err error
		switch {
		case f.Segment == nil:
			f.Repaired = swept(f.Path)
		case f.Severity == harmless:
			f.Repaired, err = cutTail(s.report(*f.Segment))
		case quarantine:
			f.Repaired, err = setAside(d, s, s.report(*f.Segment))
		}
		if err != nil {
			return fmt.Errorf("repair segment %d: %w", *f.Segment, err)
		}
	}
	return nil
}

// swept tells that taking the lock has removed an unfinished file.
func swept(path string) string {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "removed"
	}
	return ""
}

// syncTails makes all batches that count safe from loss of power: a file that
// is cut says that those before its end are.
func (s *surveyed) syncTails() error {
	for i := range s.segments {
		if r := &s.segments[i]; !r.cut {
			f, err := os.Open(r.Path)
			if err != nil {
				return err
			}
			if err := errors.Join(f.Sync(), f.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

// report gives what the survey found of a segment.
func (s *surveyed) report(id record.SegmentID) *segmentReport {
	i := slices.IndexFunc(s.segments, func(r segmentReport) bool { return r.ID == id })
	return &s.segments[i]
}

// cutTail ends a segment behind its last seal that counts.
func cutTail(r *segmentReport) (string, error) {
	if r.State != stateTorn && r.State != stateAhead {
		return "", nil // A stale segment is left to the next start.
	}
	if r.UsedBytes == 0 {
		if err := os.Remove(r.Path); err != nil {
			return "", err
		}
		return "removed, for no batch of it counts", syncFolder(r.Path)
	}
	b, err := os.ReadFile(r.Path)
	if err != nil {
		return "", err
	}
	if err := writeWhole(r.Path, sealed(b, r)); err != nil {
		return "", err
	}
	return fmt.Sprintf("cut at byte %d", r.UsedBytes), nil
}

// setAside moves a damaged segment to quarantine and puts its good prefix in
// its place. The damaged file is safe in quarantine before anything changes.
func setAside(d *dataDir, s *surveyed, r *segmentReport) (string, error) {
	b, err := os.ReadFile(r.Path)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(d.path, quarantineFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	aside := filepath.Join(folder, filepath.Base(r.Path))
	if err := writeWhole(aside, b); err != nil {
		return "", err
	}
	// The snapshot of the index speaks of what was lost: replay everything instead.
	if err := os.Remove(filepath.Join(d.path, store.SnapshotMeta)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if r.cut {
		if err := d.vouch(s.lastOf(b)); err != nil {
			return "", err
		}
	}
	if r.UsedBytes == 0 || r.State == stateFormat {
		if err := d.forget(r.ID); err != nil {
			return "", err
		}
		if err := os.Remove(r.Path); err != nil {
			return "", err
		}
		return "moved to " + aside, syncFolder(r.Path)
	}
	if err := writeWhole(r.Path, sealed(b, r)); err != nil {
		return "", err
	}
	return fmt.Sprintf("copied to %s and cut at byte %d; %d entries were kept", aside, r.UsedBytes, r.Entries), nil
}

// forget takes a segment out of the checkpoint, if there is one.
func (d *dataDir) forget(id record.SegmentID) error {
	c, found, err := store.ReadManifest(d.meta())
	if err != nil || !found {
		return err
	}
	c.Segments = slices.DeleteFunc(c.Segments, func(named record.SegmentID) bool { return named == id })
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(d.path, store.ManifestMeta), text)
}

// sealed is the good prefix of a segment, closed.
func sealed(b []byte, r *segmentReport) []byte {
	whole := append([]byte(nil), b[:r.UsedBytes]...)
	if !r.extent.Closed {
		whole = append(whole, make([]byte, record.SealBytes)...)
		r.extent.Chain.PutSeal(whole[r.UsedBytes:], r.LastBatch, true)
	}
	return whole
}

// writeWhole replaces a file in one step that survives a loss of power.
func writeWhole(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+device.TempSuffix)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return syncFolder(path)
}

// syncFolder makes a rename or removal in the file's folder durable.
func syncFolder(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
