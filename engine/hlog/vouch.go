package hlog

import (
	"encoding/json"
	"sync"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

// SyncedMeta is the metadata that says up to which batch nothing is missing,
// whatever segments are gone.
const SyncedMeta = "synced.json"

// SyncedFile is its content.
type SyncedFile struct {
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
	b, err := json.Marshal(SyncedFile{n})
	if err != nil {
		return err
	}
	if err := l.opts.Device.WriteMeta(SyncedMeta, b); err != nil {
		return err
	}
	v.batch = n
	return nil
}

// ReadSynced reads what a former life vouched for.
func ReadSynced(r device.MetaReader) (record.BatchID, error) {
	var f SyncedFile
	_, err := device.ReadJSON(r, SyncedMeta, &f)
	return f.Batch, err
}
