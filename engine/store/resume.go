package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io/fs"
	"slices"
	"sync"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// loadSnapshot brings the base of the last snapshot back, and returns the
// segments that are left to replay.
//
// A snapshot that is not used ends here. Of a record that was relocated while it
// was taken it knows only the copy in the tail; who replays everything may keep
// the other and let the cleaner have that copy, and the snapshot would then know
// neither.
func (st *Store) loadSnapshot(found []hlog.Found, frames int64) ([]hlog.Found, error) {
	var snap *snapshot
	if st.opts.logged() && st.manifest == nil && !st.arriving.any() { // It does not have the tombstones of its base.
		snap = st.readSnapshot()
	}
	if snap != nil && snap.Ceiling == 0 && st.opts.Cluster {
		snap = nil // Of before they had one: see Ceiling.
	}
	if snap == nil || !st.agrees(snap) {
		return found, st.removeSnapshot()
	}
	l := loader{st: st, snap: snap, segs: make([]*hlog.Segment, len(snap.Segments)), now: st.opts.Now()}
	tail, err := l.adopt(found, frames)
	if err != nil {
		return nil, err
	}
	st.log.SkipTo(snap.Next) // Ids of the base that are gone must not come back.
	l.mapTables()
	for i := range st.floors {
		floor := binary.LittleEndian.Uint64(snap.floors[8*i:])
		st.floors[i].Store(floor)
		st.raiseCeiling(floor)
	}
	st.raiseCeiling(snap.Ceiling)
	st.chunkIDs.Store(snap.ChunkIDs)
	if err := l.load(); err != nil {
		return nil, err
	}
	l.noteResults()
	st.droppedBefore()
	return tail, l.countUnknown()
}

func (st *Store) removeSnapshot() error {
	if err := st.dev.RemoveMeta(SnapshotMeta); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// loader brings one snapshot back.
type loader struct {
	st      *Store
	snap    *snapshot
	segs    []*hlog.Segment // by their number in the snapshot; nil if gone
	now     int64
	tables  [256]*table
	mean    [256]int // bytes of a record, by its table
	mu      sync.Mutex
	unknown map[*hlog.Segment][]uint32 // offsets of records whose table is not known
	results map[*hlog.Segment][]uint32 // and of results whose time may not be over
}

// adopt takes the segments of the base into the log, as many in memory as fit,
// the newest first. It does not read the others.
func (l *loader) adopt(found []hlog.Found, frames int64) (tail []hlog.Found, err error) {
	tails := int64(0)
	for _, f := range found {
		if l.inBase(f) < 0 {
			tails++
		}
	}
	room := frames - tails
	for _, f := range slices.Backward(found) {
		n := l.inBase(f)
		if n < 0 {
			tail = append(tail, f)
			continue
		}
		sum := l.snap.Segments[n].Summary
		if err := f.End(sum.End); err != nil {
			return nil, &RecoveryError{f.ID, err}
		}
		s, err := l.st.log.AdoptKnown(f, room > 0, sum)
		if err != nil {
			return nil, &RecoveryError{f.ID, err}
		}
		room--
		l.segs[n] = s
	}
	slices.Reverse(tail)
	return tail, nil
}

// inBase gives the number of a found segment in the snapshot; -1 if it is not
// part of the base. All of the base was synced before the snapshot counted, so a
// file that is not cut is a whole one whose cut a loss of power took. It must
// not be replayed: the base's tombstones are not.
func (l *loader) inBase(f hlog.Found) int {
	n, ok := slices.BinarySearchFunc(l.snap.Segments, f.ID, func(s snapshotSegment, id record.SegmentID) int {
		return cmp.Compare(s.ID, id)
	})
	if !ok || f.Closed && f.Bytes() != int64(l.snap.Segments[n].End) {
		return -1
	}
	return n
}

// mapTables maps the snapshot's table numbers to what is left of the tables.
func (l *loader) mapTables() {
	for n, id := range l.snap.Tables {
		l.tables[n] = l.st.tables.byID(id)
	}
	for n, bytes := range l.snap.Mean[:min(len(l.snap.Mean), completionNumber)] {
		l.mean[n] = int(bytes)
	}
	l.tables[chunkTableNumber] = &noTable
	l.tables[completionNumber] = l.st.tables.completions
	l.tables[unknownTable] = &noTable // Counted afterwards.
}

// load inserts the entries, in parallel.
func (l *loader) load() error {
	l.unknown, l.results = map[*hlog.Segment][]uint32{}, map[*hlog.Segment][]uint32{}
	entries := l.snap.entries[:len(l.snap.entries)/snapshotEntry*snapshotEntry]
	workers := l.st.opts.Heads + 1
	share := (len(entries)/snapshotEntry + workers - 1) / workers * snapshotEntry
	var wg sync.WaitGroup
	var sessions []*Session
	for part := range slices.Chunk(entries, max(share, snapshotEntry)) {
		ss, err := l.st.NewSession()
		if err != nil {
			return err
		}
		defer ss.Close()
		sessions = append(sessions, ss)
		wg.Go(func() { l.loadPart(ss, part) })
	}
	wg.Wait()
	for _, ss := range sessions {
		if ss.err != nil {
			return ss.err
		}
	}
	return nil
}

func (l *loader) loadPart(ss *Session, part []byte) {
	for i := 0; i+snapshotEntry <= len(part) && ss.err == nil; i += snapshotEntry {
		if i%(512*snapshotEntry) == 0 {
			ss.guard.Refresh()
		}
		l.loadEntry(ss, binary.LittleEndian.Uint64(part[i:]), binary.LittleEndian.Uint32(part[i+8:]))
	}
	ss.guard.Leave()
}

func (l *loader) loadEntry(ss *Session, packed uint64, where uint32) {
	number, tableNumber := where>>8, where&255
	if packed == 0 || int(number) >= len(l.segs) || l.segs[number] == nil {
		return
	}
	s, t := l.segs[number], l.tables[tableNumber]
	off := uint32(packed>>2&(1<<20-1)) * 8
	a := record.MakeAddress(s.Slot, off)
	place := record.Place(packed&^(1<<32-1) | packed>>22&1023)
	if t == nil {
		ss.head.Died(a, 0)
		return
	}
	if !l.st.ownsAt(place, tableNumber, a, s.ID) {
		if p, ok := l.st.log.Entry(a); ok {
			ss.head.Died(a, uint32(p.Length()))
		}
		return
	}
	if !l.st.ix.Load(place, a) {
		ss.fail(ErrIndexFull)
		return
	}
	switch {
	case tableNumber == unknownTable:
		l.comeBack(l.unknown, s, off)
		return
	case tableNumber == completionNumber && l.snap.Segments[number].Expiry > l.now:
		l.comeBack(l.results, s, off)
	}
	t.count(ss.n, worth{1, int(packed >> 1 & 1), l.mean[tableNumber]})
}

// comeBack lists a record that must be looked at.
func (l *loader) comeBack(in map[*hlog.Segment][]uint32, s *hlog.Segment, off uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in[s] = append(in[s], off)
}

// noteResults notes results of a former life. The snapshot does not know whose they are, so their segments are read as far as they
// are not in memory: those of the last minutes before it. Of one that cannot be read nothing is known but that it has some.
func (l *loader) noteResults() {
	for s, offsets := range l.results {
		b, err := l.bytesOf(s)
		if err != nil {
			l.st.opts.Logger.Error("results of operations cannot be read", "segment", s.ID, "error", err)
			l.st.clients.foreign.noteUntold(l.now + l.st.opts.KeepResults.Milliseconds())
			continue
		}
		for _, off := range offsets {
			l.st.noteForeign(record.PtrOf(b[off:]), l.now)
		}
	}
}

// bytesOf gives a segment's bytes. Nothing leaves memory yet.
func (l *loader) bytesOf(s *hlog.Segment) ([]byte, error) {
	if b := l.st.log.Bytes(s); b != nil {
		return b, nil
	}
	return l.st.log.Load(s)
}

// countUnknown counts the records whose table the snapshot did not know.
func (l *loader) countUnknown() error {
	for s, offsets := range l.unknown {
		b, err := l.st.log.Load(s)
		if err != nil {
			return &RecoveryError{s.ID, err}
		}
		l.countAt(b, offsets)
	}
	return nil
}

// countAt counts the records at some offsets of a segment. Others of the same
// segment were counted when they were loaded.
func (l *loader) countAt(segment []byte, offsets []uint32) {
	for _, off := range offsets {
		p := record.PtrOf(segment[off:])
		if t := l.st.tables.byID(p.Table()); t != nil {
			t.count(l.st.keeper.n, worthOf(p))
		}
		l.st.noteForeign(p, l.now)
	}
}
