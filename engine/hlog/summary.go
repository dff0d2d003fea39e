package hlog

import "github.com/ostrodb/ostro/engine/record"

// Summary is what can be said of a closed segment without reading it again.
type Summary struct {
	End        uint32           `json:"end"`
	Dead       int64            `json:"dead"`
	Tombstones int64            `json:"tombstones,omitempty"`
	Table      record.TableID   `json:"table"`
	Mixed      bool             `json:"mixed,omitempty"` // it has records of several tables, or some that expire
	Horizon    record.SegmentID `json:"horizon"`
	Created    int64            `json:"created"`
}

// Summarize describes a closed segment. The caller holds a guard.
func (l *Log) Summarize(s *Segment) Summary {
	l.noteTables(s)
	sum := Summary{
		End: s.End(), Dead: l.Dead(s), Tombstones: s.Tombstones.Load(), Horizon: s.horizon, Created: s.created,
	}
	l.mu.Lock()
	sum.Table, sum.Mixed = s.table, s.mixed
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
	first, mixed, table := true, false, record.TableID(0)
	for _, p := range record.Entries(bytes) {
		if p.Type() != record.TypePut {
			continue
		}
		if first {
			first, table = false, p.Table()
		}
		if p.Table() != table || p.HasExpiry() {
			mixed = true
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.table, s.mixed, s.known = table, mixed, true
}
