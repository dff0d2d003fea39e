package main

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// surveyed is a whole directory after a scan.
type surveyed struct {
	dir        *dataDir
	identity   store.Identity
	database   func(record.TableID) (db int, alive bool)
	checkpoint *store.Manifest // nil: all segments count
	synced     record.BatchID  // up to it none is missing, whatever segments are gone
	metaErrs   []error         // why one of those could not be read
	segments   []segmentReport
	keys       map[int]int64 // by database
	expired    int64         // newest records past their time
}

// newest is the newest entry of a key so far.
type newest struct {
	version   uint64
	segment   int32 // position in segments
	database  int32 // -1: a piece of a large value, or the result of an operation
	bytes     uint32
	tombstone bool
	expired   bool
}

// survey scans every segment. bar may be nil.
func survey(d *dataDir, bar *progressBar, now time.Time) (*surveyed, error) {
	s := &surveyed{dir: d, keys: map[int]int64{}}
	s.readMeta()
	keys := map[record.Place]newest{}
	tails := map[int][]byte{} // by position in segments
	var done int64
	for _, f := range d.segments {
		r, b, err := scanSegment(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // A running server cleaned it away.
		}
		if err != nil {
			return nil, err
		}
		if s.checkpoint != nil && !slices.Contains(s.checkpoint.Segments, f.id) {
			r.State, r.Problem, r.UsedBytes = stateStale, "", 0
		}
		s.segments = append(s.segments, r)
		if position := len(s.segments) - 1; r.isTail() {
			tails[position] = b
		} else {
			s.note(keys, position, b, now.UnixMilli())
		}
		done += f.bytes
		bar.Update(store.Progress{Stage: "scan", Done: done, Total: d.totalBytes(), Unit: "bytes"})
	}
	bar.Finish()
	if d.held || d.inUse() == "" { // Else they were read one after the other, while they grew.
		s.order(tails)
	}
	for position, b := range tails {
		s.note(keys, position, b, now.UnixMilli())
	}
	s.settle(keys)
	return s, nil
}

func (s *surveyed) readMeta() {
	meta := s.dir.meta()
	note := func(err error) {
		if err != nil {
			s.metaErrs = append(s.metaErrs, err)
		}
	}
	var err error
	s.identity, _, err = store.ReadIdentity(meta)
	note(err)
	s.synced, err = hlog.ReadSynced(meta)
	note(err)
	s.database = func(id record.TableID) (int, bool) { return int(id), true }
	tables, found, err := store.ReadTables(meta)
	if note(err); found {
		s.database = tables.Owners()
	}
	checkpoint, found, err := store.ReadManifest(meta)
	if note(err); found {
		s.checkpoint = &checkpoint
	}
}

// note remembers the newest entry of each key of the segment at a position, with
// the bytes b.
func (s *surveyed) note(keys map[record.Place]newest, position int, b []byte, nowMillis int64) {
	r := &s.segments[position]
	for _, p := range record.Entries(b[:r.UsedBytes]) {
		switch p.Type() {
		case record.TypePut:
			r.Puts++
		case record.TypeTombstone:
			r.Tombstones++
		case record.TypeCompletion:
			if p.ExpireAt() <= nowMillis {
				continue // over: dead
			}
		default:
			continue
		}
		database, alive := s.database(p.Table())
		switch {
		case store.Internal(p.Table()):
			database = -1
		case !alive:
			continue
		}
		place := record.PlaceOf(p.Table(), p.Key())
		if old, ok := keys[place]; ok && old.version >= p.Version() {
			continue
		}
		expires := p.ExpireAt()
		keys[place] = newest{
			version: p.Version(), segment: int32(position), database: int32(database), bytes: uint32(p.Length()),
			tombstone: p.Type() == record.TypeTombstone, expired: expires != 0 && expires <= nowMillis,
		}
	}
}

// missing lists the segments that the checkpoint names and nobody has.
func (s *surveyed) missing() (ids []record.SegmentID) {
	if s.checkpoint == nil {
		return nil
	}
	for _, id := range s.checkpoint.Segments {
		if !slices.ContainsFunc(s.segments, func(r segmentReport) bool { return r.ID == id }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// settle adds up what is alive.
func (s *surveyed) settle(keys map[record.Place]newest) {
	for _, k := range keys {
		switch {
		case k.tombstone:
		case k.expired:
			s.expired++
		default:
			s.segments[k.segment].LiveBytes += int64(k.bytes)
			if k.database >= 0 {
				s.keys[int(k.database)]++
			}
		}
	}
}
