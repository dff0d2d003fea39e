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

// SegmentsMeta is the metadata that says which ids of segments may have been
// used by a log that is copied elsewhere.
const SegmentsMeta = "segments.json"

// segmentsFile is its content.
type segmentsFile struct {
	Next record.SegmentID `json:"next"` // no segment had this id or a higher one
}

// idBlock is how many ids are noted as used at once.
const idBlock = 64

// segmentIDs keeps a log that is copied from using an id twice. A copy of a
// segment that was dropped long ago, on a node that was away since, would else
// be taken for one of its namesake.
type segmentIDs struct {
	mu    sync.Mutex
	noted record.SegmentID // ids below are noted as used
}

// load goes on behind all ids that a former life may have used.
func (n *segmentIDs) load(l *Log) error {
	var f segmentsFile
	found, err := device.ReadJSON(l.opts.Device, SegmentsMeta, &f)
	if found {
		l.SkipTo(f.Next)
	}
	return err
}

// restoredGap is how far ids leap in a log that was lost: some that its copies do not tell of may have been used.
const restoredGap = 1 << 20

// Restored notes what copies tell of a log whose directory was lost: the highest id of its segments, and up to which batch
// none is missing there, whatever segments are gone. In a directory that has its notes it does nothing.
func Restored(d device.Device, highest record.SegmentID, safe record.BatchID) error {
	if _, err := d.ReadMeta(SegmentsMeta); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	synced, err := json.Marshal(SyncedFile{safe})
	if err != nil {
		return err
	}
	ids, err := json.Marshal(segmentsFile{highest + restoredGap})
	if err != nil {
		return err
	}
	if err := d.WriteMeta(SyncedMeta, synced); err != nil { // First: the other one says that both are there.
		return err
	}
	return d.WriteMeta(SegmentsMeta, ids)
}

// drawSegment gives a segment an id and a slot; an id that was never used, if
// the log is copied.
func (l *Log) drawSegment() (*Segment, error) {
	if l.opts.Replicator == nil {
		return l.newSegment(), nil
	}
	l.ids.mu.Lock()
	defer l.ids.mu.Unlock()
	if err := l.ids.note(l); err != nil {
		return nil, err
	}
	return l.newSegment(), nil
}

// note makes sure that the next id is noted as used. The caller holds mu.
func (n *segmentIDs) note(l *Log) error {
	next := l.NextID()
	if next < n.noted {
		return nil
	}
	b, err := json.Marshal(segmentsFile{next + idBlock})
	if err != nil {
		return err
	}
	if err := l.opts.Device.WriteMeta(SegmentsMeta, b); err != nil {
		return fmt.Errorf("note ids of segments: %w", err)
	}
	n.noted = next + idBlock
	return nil
}

// Appended is how many bytes went through the heads and were sealed since the log was
// opened.
func (l *Log) Appended() (n uint64) {
	for _, h := range l.allHeads() {
		n += h.Sealed()
	}
	return n
}
