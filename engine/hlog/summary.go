package hlog

import "github.com/ostrodb/ostro/engine/record"

// Summary is what can be said of a closed segment without reading it again.
type Summary struct {
	End        uint32           `json:"end"`
	Batch      record.BatchID   `json:"batch"` // the last of it
	Dead       int64            `json:"dead"`
	Tombstones int64            `json:"tombstones,omitempty"`
	Table      record.TableID   `json:"table"`
	Mixed      bool             `json:"mixed,omitempty"`  // it has records of several tables, or some that expire
	Tables     *TableSet        `json:"tables,omitempty"` // if it is mixed, and this is known
	Horizon    record.SegmentID `json:"horizon"`
	Created    int64            `json:"created"`
	Expiry     int64            `json:"expiry,omitempty"` // when the last of those that expire does
}

// Summarize describes a closed segment. The caller holds a guard.
func (l *Log) Summarize(s *Segment) Summary {
	l.noteTables(s)
	sum := Summary{
		End: s.End(), Batch: s.batch, Dead: l.Dead(s), Tombstones: s.Tombstones.Load(), Horizon: s.horizon, Created: s.created,
	}
	l.mu.Lock()
	sum.Table, sum.Mixed, sum.Expiry = s.table, s.mixed, s.expiry
	if s.mixed {
		sum.Tables = s.tables
	}
	l.mu.Unlock()
	return sum
}

// noteTables looks through a segment that is about to leave memory: once it is
// cold, its records' tables can only be told by reading it.
func (l *Log) noteTables(s *Segment) {
	l.mu.Lock()
	known := s.known
	l.mu.Unlock()
	bytes := l.Bytes(s)
	if known || bytes == nil {
		return
	}
	first, mixed, table, expiry := true, false, record.TableID(0), int64(0)
	tables := new(TableSet)
	for _, p := range record.Entries(bytes) {
		if p.Type() != record.TypePut && p.Type() != record.TypeCompletion {
			continue
		}
		if first || p.Table() != table {
			tables.add(p.Table())
		}
		if first {
			first, table = false, p.Table()
		}
		mixed = mixed || p.Table() != table || p.HasExpiry()
		expiry = max(expiry, p.ExpireAt())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.table, s.mixed, s.tables, s.expiry, s.known = table, mixed, tables, expiry, true
}

// TableSet is which tables a segment may have records of: a bit for all those whose numbers end alike. Databases have
// numbers one after the other, so it is exact for the first thousand of them. It never changes.
type TableSet [tableBits / 64]uint64

const tableBits = 1024

func (t *TableSet) add(id record.TableID) { t[id%tableBits/64] |= 1 << (id % 64) }

func (t *TableSet) has(id record.TableID) bool { return t[id%tableBits/64]>>(id%64)&1 != 0 }

// tables are those of the summary; nil if they are not known.
func (sum *Summary) tables() *TableSet {
	if sum.Mixed {
		return sum.Tables
	}
	only := new(TableSet)
	only.add(sum.Table)
	return only
}

// MayHold tells whether the record at a, which is cold, may be one of a table. Otherwise who looks for those of the
// table need not read it. The caller holds a guard in which it found a.
func (l *Log) MayHold(a record.Address, id record.TableID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.bySlot[a.Slot()]
	return s == nil || s.tables == nil || s.tables.has(id)
}

// Expired tells once whether s has records that expire and all of them have by
// now.
func (l *Log) Expired(s *Segment, now int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.expiry == 0 || s.expiry > now {
		return false
	}
	s.expiry = 0
	return true
}

// ExpireAgain lets Expired say so once more, from some time on.
func (l *Log) ExpireAgain(s *Segment, from int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.expiry = from
}

// MayHave tells whether s may have records of a table for which gone says yes.
func (l *Log) MayHave(s *Segment, gone func(record.TableID) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !s.known || s.mixed || gone(s.table)
}

// Doom says that nothing in s is alive, whatever was counted.
func (l *Log) Doom(s *Segment) {
	if !s.doomed.Swap(true) {
		l.survivor.dead.add(s.Slot, int32(s.End()))
	}
}
