package hlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

// SyncedMeta is the metadata that says up to which batch nothing is missing,
// whatever segments are gone.
const SyncedMeta = "synced.json"

// syncedFile is its content.
type syncedFile struct {
	Batch record.BatchID `json:"batch"`
}

// voucher remembers what SyncedMeta says.
type voucher struct {
	mu    sync.Mutex
	batch record.BatchID
}

// vouchFor is called before the file of a segment goes: recovery must not take
// its batches for lost ones. It writes the metadata, which all segments that
// were synced by then share; so of those that the cleaner takes few are the
// first to need it.
func (l *Log) vouchFor(s *Segment) error {
	v := &l.vouch
	v.mu.Lock()
	defer v.mu.Unlock()
	if !l.opts.Logged || s.batch <= v.batch {
		return nil
	}
	if s.batch > l.Synced() {
		if err := l.syncHeads(); err != nil {
			return err
		}
	}
	n := l.Synced()
	b, err := json.Marshal(syncedFile{n})
	if err != nil {
		return err
	}
	if err := l.opts.Device.WriteMeta(SyncedMeta, b); err != nil {
		return err
	}
	v.batch = n
	return nil
}

// readSynced reads what a former life vouched for.
func readSynced(d device.Device) (record.BatchID, error) {
	b, err := d.ReadMeta(SyncedMeta)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var f syncedFile
	if err := json.Unmarshal(b, &f); err != nil {
		return 0, fmt.Errorf("%s is damaged (%w): restore it from a copy", SyncedMeta, err)
	}
	return f.Batch, nil
}
