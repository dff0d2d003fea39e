package store

import (
	"context"
	"errors"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// The sweeper cannot tell what a cold record is, and the cleaner goes where it
// knows of garbage. So cold segments that may have become garbage without
// anybody noticing are read, once, and what is dead in them is counted.

// auditDropped looks for records of tables that are gone.
func (st *Store) auditDropped(ctx context.Context, ss *Session) {
	gone := func(t record.TableID) bool { return t == chunkTable || st.tables.byID(t) == nil }
	st.auditCold(ctx, ss, func(s *hlog.Segment) bool { return st.log.MayHave(s, gone) })
}

// auditExpired looks for records that expired, where all that can have have.
func (st *Store) auditExpired(ctx context.Context, ss *Session) {
	now := st.opts.Now()
	st.auditCold(ctx, ss, func(s *hlog.Segment) bool { return st.log.Expired(s, now) })
}

// auditCold audits the cold segments that may need it.
func (st *Store) auditCold(ctx context.Context, ss *Session, due func(*hlog.Segment) bool) {
	for _, s := range st.log.Segments() {
		if ctx.Err() != nil {
			return
		}
		if !s.Closed() || st.log.InMemory(s) || !due(s) {
			continue
		}
		b, err := st.log.Load(s)
		if err != nil {
			if !errors.Is(err, hlog.ErrGone) {
				st.opts.Logger.Error("a cold segment could not be read for what is dead in it", "segment", s.ID, "error", err)
			}
			continue
		}
		if !ss.audit(s, b) {
			st.log.ExpireAgain(s)
		}
	}
}

// auditStep is how many entries are looked at inside one guard.
const auditStep = 256

// audit drops from the index what is dead in the segment with the bytes b;
// false if there was no room to note all of that in the log.
func (ss *Session) audit(s *hlog.Segment, b []byte) bool {
	n, all := 0, true
	ss.Begin()
	for off, p := range record.Entries(b) {
		if n%auditStep == 0 {
			ss.Seal()
			ss.End()
			ss.Begin()
			if ss.st.log.ByID(s.ID) != s {
				break // Cleaned meanwhile: its slot may be another's.
			}
		}
		n++
		if p.Type() == record.TypePut {
			all = ss.auditRecord(record.MakeAddress(s.Slot, off), p) && all
		}
	}
	ss.Seal()
	ss.End()
	return all
}

// auditRecord drops a record that is dead; false if that has to be tried again.
func (ss *Session) auditRecord(a record.Address, p record.Ptr) bool {
	dropped := ss.st.tableGone(p)
	if !dropped && !ss.expired(p) {
		return true
	}
	var pr index.Probe
	place := placeOf(p)
	if !isAt(ss.st.ix, place, a, &pr) {
		return true
	}
	t := ss.st.tables.byID(p.Table())
	if dropped || t == nil {
		gone := ss.st.ix.Remove(&pr)
		if gone {
			ss.head.Died(a, uint32(p.Length()))
		}
		return gone
	}
	k := Key{Place: place, Table: p.Table(), Bytes: p.Key(), in: t}
	if ss.remove(&k, &pr, p, versionOf(p)) != OK {
		return false
	}
	ss.st.work.expired.Add(1)
	return true
}
