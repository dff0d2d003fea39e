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
		if again := ss.audit(s, b); again != 0 {
			st.log.ExpireAgain(s, again)
		}
	}
}

// auditStep is how many dead records are dropped inside one guard.
const auditStep = 256

// suspect is a record that seems to be dead.
type suspect struct {
	at record.Address
	p  record.Ptr
}

// auditRest is after how many milliseconds a segment is read again that has what is not this node's to remove.
const auditRest = 10_000

// audit drops from the index what is dead in the segment with the bytes b. It tells when the segment is to be read
// again, as not all of that could be noted in the log, or is another node's; 0 is never.
func (ss *Session) audit(s *hlog.Segment, b []byte) (again int64) {
	all := true
	var dead []suspect
	ss.now = ss.st.opts.Now()
	for off, p := range record.Entries(b) {
		if !isRecord(p) || !ss.st.tableGone(p) && !ss.expired(p) {
			continue
		}
		if ss.st.others(p) && !ss.st.tableGone(p) {
			again = ss.now + auditRest
			continue
		}
		if dead = append(dead, suspect{record.MakeAddress(s.Slot, off), p}); len(dead) == auditStep {
			all = ss.auditSome(s, dead) && all
			dead = dead[:0]
		}
	}
	if !ss.auditSome(s, dead) || !all {
		return 1
	}
	return again
}

// auditSome drops records that are dead; false if some have to be tried again.
func (ss *Session) auditSome(s *hlog.Segment, dead []suspect) bool {
	all := true
	ss.Begin()
	defer ss.End()
	if ss.st.log.ByID(s.ID) == s { // Else it was cleaned meanwhile: its slot may be another's.
		ss.aloud(len(dead), func(i int) { all = ss.auditRecord(dead[i].at, dead[i].p) && all })
	}
	return all
}

// auditRecord drops a record that is dead; false if that has to be tried again.
func (ss *Session) auditRecord(a record.Address, p record.Ptr) bool {
	var pr index.Probe
	place := placeOf(p)
	if !isAt(ss.st.ix, place, a, &pr) {
		return true
	}
	t := ss.st.tables.byID(p.Table())
	if t == nil || ss.st.tableGone(p) {
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
	ss.st.noteExpired(&k)
	return true
}
