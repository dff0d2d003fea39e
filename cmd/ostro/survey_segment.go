package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ostrodb/ostro/engine/record"
)

// segmentState is what a scan makes of a segment.
type segmentState string

const (
	stateClosed  segmentState = "closed"  // whole and finished
	stateOpen    segmentState = "open"    // whole so far; its head was open when the process ended
	stateTorn    segmentState = "torn"    // open, and a batch at its end did not arrive whole: never acknowledged
	stateAhead   segmentState = "ahead"   // ends in batches that do not count: others that came before them are missing
	stateUnused  segmentState = "unused"  // prepared, nothing written yet
	stateCorrupt segmentState = "corrupt" // bytes that were safe are damaged
	stateFormat  segmentState = "foreign" // written by another version of Ostro
	stateStale   segmentState = "stale"   // no part of the checkpoint: the next start removes it
)

// segmentReport is all that a scan tells of one segment.
type segmentReport struct {
	ID        record.SegmentID `json:"id"`
	Path      string           `json:"path"`
	State     segmentState     `json:"state"`
	Created   time.Time        `json:"created,omitzero"`
	Log       record.LogID     `json:"log"`
	FileBytes int64            `json:"fileBytes"`
	UsedBytes int              `json:"usedBytes"` // up to the last good seal
	LostBytes int              `json:"lostBytes"` // beyond it
	// SealsBeyond counts what looks like seals beyond the last good one. A torn
	// batch has none, because a batch is sealed only once it is whole.
	SealsBeyond int `json:"sealsBeyond"`
	Entries     int `json:"entries"`
	Batches     int `json:"batches"` // that is, seals
	// LastBatch is the number of the last good one. Dropped counts those behind
	// it that do not count, because a batch before them is missing.
	LastBatch record.BatchID `json:"lastBatch"`
	Dropped   int            `json:"dropped"`

	Puts       int   `json:"puts"`
	Tombstones int   `json:"tombstones"`
	LiveBytes  int64 `json:"liveBytes"` // of records that are their key's newest

	Problem string `json:"problem,omitempty"`

	extent record.Extent
	cut    bool // the file is as long as the segment: all batches up to its last were synced
}

// Live is the part of the used bytes that is alive, 0 to 1.
func (r *segmentReport) Live() float64 {
	if r.UsedBytes == 0 {
		return 0
	}
	return float64(r.LiveBytes) / float64(r.UsedBytes)
}

// scanSegment reads and verifies one file: header, every entry's checksum, and
// the chain of seals. The bytes are good up to UsedBytes.
func scanSegment(f segmentFile) (segmentReport, []byte, error) {
	r := segmentReport{ID: f.id, Path: f.path, FileBytes: f.bytes}
	b, err := os.ReadFile(f.path)
	if err != nil {
		return r, nil, fmt.Errorf("read segment %d: %w", f.id, err)
	}
	size := len(b)
	if info, err := record.DecodeSegmentHeader(b); err == nil {
		r.Created, r.Log = time.UnixMilli(info.CreatedMillis).UTC(), info.Log
		size = int(info.SegmentBytes)
	}
	// A file is cut at its end once its segment is closed and synced: damage in a
	// shorter one is no torn write.
	r.cut = len(b) < size || record.IsClosingSeal(lastSeal(b))
	ext, err := record.ScanWith(b, f.id, record.ScanOptions{Closed: r.cut})
	r.took(ext)
	switch {
	case errors.Is(err, record.ErrFormat):
		r.State, r.Problem = stateFormat, err.Error()
	case err != nil:
		r.State, r.Problem = stateCorrupt, err.Error()
	case ext.End == 0 && ext.LostBytes == 0:
		r.State = stateUnused
	case ext.Torn && !ext.Closed:
		r.State = stateTorn
		r.SealsBeyond = countSeals(b[ext.End : ext.End+ext.LostBytes])
	case ext.Closed:
		r.State = stateClosed
	default:
		r.State = stateOpen
	}
	return r, b, nil
}

// took notes what of the segment is whole.
func (r *segmentReport) took(ext record.Extent) {
	r.extent = ext
	r.UsedBytes, r.LostBytes, r.Entries, r.Batches, r.LastBatch = ext.End, ext.LostBytes, ext.Entries, ext.Batches, ext.Batch
}

// lastSeal is where the closing seal of a file stands that was cut.
func lastSeal(b []byte) []byte { return b[max(0, len(b)-record.SealBytes):] }

// countSeals counts what has the form of a seal behind an entry that is whole.
func countSeals(b []byte) (n int) {
	for off := 0; off+record.HeaderBytes <= len(b); {
		p, err := record.Check(b[off:])
		if err != nil || p.Type() == record.TypeVoid {
			off += 8
			continue
		}
		off += p.Length()
		if off+record.SealBytes <= len(b) && record.IsSeal(b[off:off+record.SealBytes]) {
			n++
		}
	}
	return n
}
