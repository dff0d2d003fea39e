package meta

import (
	"maps"
	"slices"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// modelKeys is how many keys there are, each in a range of its own.
const modelKeys = 2

func modelRange(key int) view.Ranges { return slots(uint16(100*key), uint16(100*key+99)) }

func modelPlace(key int) record.Place { return modelRange(key)[0].First }

// modelEntry is a record of a key, or its tombstone.
type modelEntry struct {
	key    int
	ver    uint64
	val    int              // 0: a tombstone
	batch  record.BatchID   // 0: in a side segment
	seg    record.SegmentID // of a side segment
	unsafe bool             // in a side segment that is not adopted yet
}

// modelLog is a log of which all that counts has its copies.
type modelLog struct {
	entries []modelEntry
	batch   record.BatchID // the next
	seg     record.SegmentID
}

func newModelLog() *modelLog { return &modelLog{batch: 1, seg: 1} }

func (l *modelLog) append(e modelEntry) modelEntry {
	e.batch, e.seg, e.unsafe = l.batch, 0, false
	l.batch++
	l.entries = append(l.entries, e)
	return e
}

func (l *modelLog) appendSide(e modelEntry) modelEntry {
	e.batch, e.seg, e.unsafe = 0, l.seg, true
	l.seg++
	l.entries = append(l.entries, e)
	return e
}

// counting are the entries of some places that are above their floors, and safe.
func (l *modelLog) counting(floors []Floor, of view.Ranges) (out []modelEntry) {
	for _, e := range l.entries {
		if !e.unsafe && of.Contains(modelPlace(e.key)) && above(floors, e) {
			out = append(out, e)
		}
	}
	return out
}

func above(floors []Floor, e modelEntry) bool {
	for _, f := range floors {
		below := e.batch < f.Batch
		if e.batch == 0 {
			below = e.seg < f.Segment
		}
		if below && f.Ranges.Contains(modelPlace(e.key)) {
			return false
		}
	}
	return true
}

// newest is what the highest versions say of each key.
func newest(entries []modelEntry) map[int]modelEntry {
	top := map[int]modelEntry{}
	for _, e := range entries {
		if t, there := top[e.key]; !there || e.ver > t.ver {
			top[e.key] = e
		}
	}
	return top
}

// modelStore is a node's store: its index, and what it knows of what is not there.
type modelStore struct {
	log     *modelLog
	index   map[int]modelEntry
	floor   map[int]uint64 // versions that keys had when they were deleted
	settled map[int]uint64 // of unsettled places: up to which version nothing comes back
	expects view.Ranges    // places that it opened as arriving
	dropped map[int]bool   // keys of which something was dropped as sent
	flaw    string
}

// openModelStore replays a log.
func openModelStore(l *modelLog, floors []Floor, owned, unsettled view.Ranges) *modelStore {
	s := &modelStore{log: l, index: map[int]modelEntry{}, floor: map[int]uint64{}, settled: map[int]uint64{}, expects: unsettled, dropped: map[int]bool{}}
	counting := l.counting(floors, owned)
	for _, e := range counting {
		if e.val == 0 {
			s.floor[e.key] = max(s.floor[e.key], e.ver)
			if unsettled.Contains(modelPlace(e.key)) {
				s.settled[e.key] = max(s.settled[e.key], e.ver)
			}
		}
	}
	for key, e := range newest(counting) {
		if e.val != 0 {
			s.index[key] = e
		}
	}
	return s
}

// put writes a value in a place whose ceiling, if it is arriving, is given.
func (s *modelStore) put(key, val int, ceiling uint64) {
	ver := max(s.floor[key], ceiling) + 1
	if old, there := s.index[key]; there {
		ver = old.ver + 1
	}
	s.index[key] = s.log.append(modelEntry{key: key, ver: ver, val: val})
}

// remove deletes what is there as of a version.
func (s *modelStore) remove(key int, ver uint64) {
	s.log.append(modelEntry{key: key, ver: ver})
	s.floor[key] = max(s.floor[key], ver)
	s.settled[key] = max(s.settled[key], ver) // Of no consequence unless the place is unsettled.
	delete(s.index, key)
}

// ceiling is the highest version that there was of a key.
func (s *modelStore) ceiling(key int) uint64 { return max(s.floor[key], s.index[key].ver) }

// take brings in an entry of another log.
func (s *modelStore) take(e modelEntry, unsettled bool, append func(modelEntry) modelEntry) {
	if unsettled && e.ver <= s.settled[e.key] {
		return
	}
	if old, there := s.index[e.key]; !there || old.ver < e.ver {
		s.index[e.key] = append(e)
	}
}

// replay imports entries of logs. One that is broken off has brought records and not what was deleted.
func (s *modelStore) replay(entries []modelEntry, unsettled func(key int) bool, whole bool) {
	for _, e := range entries {
		if e.val != 0 {
			s.take(e, unsettled(e.key), s.log.appendSide)
		}
	}
	if !whole {
		return
	}
	for _, e := range entries {
		if e.val != 0 {
			continue
		}
		s.floor[e.key] = max(s.floor[e.key], e.ver)
		switch old, there := s.index[e.key]; {
		case there && old.ver < e.ver, !there && s.dropped[e.key] && s.flaw != "a tombstone of what was sent is not kept":
			s.remove(e.key, e.ver)
		}
	}
}

// retract forgets places without a trace in the log.
func (s *modelStore) retract(ranges view.Ranges) {
	maps.DeleteFunc(s.index, func(key int, _ modelEntry) bool { return ranges.Contains(modelPlace(key)) })
	maps.DeleteFunc(s.settled, func(key int, _ uint64) bool { return ranges.Contains(modelPlace(key)) })
	s.expects = s.expects.Subtract(ranges)
}

// clean moves all that is alive to the end of the log, and drops the rest. Tombstones stay
// where carries says so.
func (s *modelStore) clean(carries func(modelEntry) bool) {
	old := s.log.entries
	s.log.entries = nil
	tombs := map[int]modelEntry{}
	for _, e := range old {
		switch {
		case e.unsafe:
			s.log.entries = append(s.log.entries, e)
		case e.val == 0 && carries(e) && e.ver > tombs[e.key].ver:
			tombs[e.key] = e
		}
	}
	for _, key := range slices.Sorted(maps.Keys(tombs)) {
		s.log.append(tombs[key])
	}
	for _, key := range slices.Sorted(maps.Keys(s.index)) {
		if e := s.index[key]; !e.unsafe {
			s.index[key] = s.log.append(e)
		}
	}
}
