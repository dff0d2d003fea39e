package main

import (
	"encoding/json"
	"path/filepath"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// isTail tells whether the segment may end in batches that do not count: its
// file was not cut, so others that came before them may not have been synced.
func (r *segmentReport) isTail() bool {
	return !r.cut && r.UsedBytes > 0 && (r.State == stateOpen || r.State == stateTorn || r.State == stateClosed)
}

// order leaves out of the tails what recovery would: everything that was sealed
// after the first batch that is missing.
func (s *surveyed) order(tails map[int][]byte) {
	safe := s.synced
	for i := range s.segments {
		switch r := &s.segments[i]; {
		case r.cut && r.State == stateCorrupt:
			return // Up to where it was synced is not known; no server starts on it.
		case r.cut && r.State == stateClosed:
			safe = max(safe, r.LastBatch)
		}
	}
	var seen []record.BatchID
	for position, b := range tails {
		for _, p := range record.Entries(b[:s.segments[position].UsedBytes]) {
			if p.Type() == record.TypeSeal {
				seen = append(seen, p.Batch())
			}
		}
	}
	last := record.Prefix(safe, seen)
	for position, b := range tails {
		s.segments[position].endAt(b, last)
	}
}

// endAt leaves the batches after last out of a tail with the bytes b.
func (r *segmentReport) endAt(b []byte, last record.BatchID) {
	if r.LastBatch <= last {
		return
	}
	had := r.Batches
	ext, _ := record.ScanWith(b, r.ID, record.ScanOptions{Only: func(n record.BatchID) bool { return n <= last }})
	r.took(ext)
	r.State, r.Dropped = stateAhead, had-ext.Batches
}

// vouch lets what is left after a repair count, though batches of a segment
// that was synced are gone now.
func (d *dataDir) vouch(n record.BatchID) error {
	if had, err := hlog.ReadSynced(d.meta()); err != nil || had >= n {
		return err
	}
	text, err := json.Marshal(hlog.SyncedFile{Batch: n})
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(d.path, hlog.SyncedMeta), text)
}

// lastOf is the last batch of a damaged segment that was synced. Where its
// closing seal is damaged, too, all batches that were found are taken for synced.
func (s *surveyed) lastOf(b []byte) (last record.BatchID) {
	if seal := lastSeal(b); record.IsClosingSeal(seal) {
		return record.PtrOf(seal).Batch()
	}
	for i := range s.segments {
		last = max(last, s.segments[i].LastBatch)
	}
	return last
}
