package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// The cleaner takes a closed segment, copies what is still alive in it to the
// survivor head, points the index at the copies, and drops the segment. It
// chooses by cost and benefit: much garbage first, and among equals the older,
// for young segments still gather garbage by themselves.

const (
	// tidyGarbage is the share of garbage in the whole log that is left alone.
	tidyGarbage = 0.30
	// tidyVictim is how much garbage a segment must hold to be cleaned without need.
	tidyVictim = 0.40
	// spillVictim is how much it must hold to be cleaned rather than spilled.
	spillVictim = 0.30
	// cleanStep is how many entries are cleaned inside one guard.
	cleanStep = 256
)

// dropDead drops segments in which nothing is alive. One that cannot be, because
// it is cold and unreadable, keeps no other. A migration leaves many at once: to go through them is work like tidy's.
func (st *Store) dropDead(ctx context.Context) {
	pace := background.Pace{Idle: tidyIdle}
	for _, s := range st.log.Segments() {
		if ctx.Err() != nil {
			return
		}
		if st.log.AtRest(s) && st.log.Live(s) <= 0 && !s.Vacated() {
			if err := st.condemnWith(func() { st.restUnlessPressed(&pace) }, s); err != nil {
				st.complain("a dead segment could not be dropped", err, s)
			}
		}
	}
}

// freeSome frees the memory of at least one segment by the policy in force.
func (st *Store) freeSome() bool {
	switch Policy(st.policy.Load()) {
	case Evict:
		return st.forgetOldest()
	case Refuse:
		return st.cleanInMemory(0.02)
	}
	if st.cleanInMemory(spillVictim) {
		return true
	}
	if st.dev != nil && st.spillOldest() {
		return true
	}
	return st.cleanInMemory(0.02)
}

// mostVictims bounds what is cleaned at once, for the sake of those who wait.
const mostVictims = 4

// cleanInMemory cleans as many segments as there is room for what is alive in
// them.
func (st *Store) cleanInMemory(least float64) bool {
	free := max(st.maxResident()-st.log.Resident()-1, 0) * int64(st.opts.SegmentBytes)
	var chosen []*hlog.Segment
	for _, v := range st.victims(mostVictims, least, st.log.InMemory) {
		if free -= v.live; free < 0 && len(chosen) > 0 {
			break
		}
		chosen = append(chosen, v.seg)
	}
	if len(chosen) == 0 {
		return false
	}
	if err := st.condemn(chosen...); err != nil {
		st.complain("cleaning failed", err, chosen...)
		return false
	}
	return true
}

// spillOldest takes the oldest segment out of memory, to its file.
func (st *Store) spillOldest() bool {
	for _, s := range st.log.Segments() {
		if !st.log.Spillable(s) || !st.log.InMemory(s) {
			continue
		}
		if err := st.cool(s); err != nil {
			st.opts.Logger.Error("spilling failed", "segment", s.ID, "error", err)
			return false
		}
		if st.evict(s) {
			return true
		}
	}
	return false
}

func (st *Store) evict(s *hlog.Segment) bool {
	st.keeper.Begin()
	defer st.keeper.End()
	return st.log.Evict(s)
}

// cool makes a segment read-only and sees that its file holds it.
func (st *Store) cool(s *hlog.Segment) error {
	st.freeze(s)
	st.cooling.Lock()
	defer st.cooling.Unlock()
	return st.log.Flush(s)
}

// freeze makes a segment read-only, and waits for it.
func (st *Store) freeze(s *hlog.Segment) {
	st.cooling.Lock()
	defer st.cooling.Unlock()
	done := make(chan struct{})
	st.log.Freeze(s, func() { close(done) })
	for {
		select {
		case <-done:
			return
		default:
			st.epoch.Drain()
			runtime.Gosched()
		}
	}
}

// complain tells that segments could not be cleaned. If that is for want of room
// elsewhere, somebody else has told.
func (st *Store) complain(what string, err error, segs ...*hlog.Segment) {
	level := slog.LevelError
	if errors.Is(err, hlog.ErrNoRoom) {
		level = slog.LevelDebug
	}
	st.opts.Logger.Log(st.ctx, level, what, "segment", segs[0].ID, "segments", len(segs), "error", err)
}

// clean relocates what is alive in closed segments and drops them.
func (st *Store) clean(segs ...*hlog.Segment) error { return st.cleanWith(runtime.Gosched, segs...) }

// cleanWith is clean; it rests between some entries and the next.
func (st *Store) cleanWith(rest func(), segs ...*hlog.Segment) error {
	if st.opts.Replicator != nil {
		return st.condemnWith(rest, segs...) // Nobody waits for copies here.
	}
	st.cleaning.Lock()
	defer st.cleaning.Unlock()
	all, err := st.relocate(rest, segs)
	if err != nil {
		return err
	}
	return st.drop(all)
}

// relocate copies what is alive in closed segments that are not condemned yet.
// If it fails, those that were done are cleaned again some day.
func (st *Store) relocate(rest func(), segs []*hlog.Segment) ([]cleaning, error) {
	all := make([]cleaning, 0, len(segs))
	for _, s := range segs {
		if _, done := st.condemned[s]; done {
			continue
		}
		st.freeze(s)
		c := cleaning{st: st, ss: st.keeper, seg: s}
		if err := c.relocateAll(rest); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// drop gives up segments in which nothing is alive any more.
func (st *Store) drop(all []cleaning) error {
	if err := st.keepSurvivors(); err != nil {
		return err
	}
	for i := range all {
		if err := all[i].drop(); err != nil {
			return err
		}
	}
	return nil
}

// cleaning is the work on one segment. It belongs to the holder of the store's
// cleaning lock.
type cleaning struct {
	st     *Store
	ss     *Session
	seg    *hlog.Segment
	cold   []byte // the segment's bytes, if they are not in memory
	forget bool   // drop live records too
	replay bool   // a life begins: no value of this log is being written
	oldest record.SegmentID
	above  *record.Above // what of the segment counts
	ahead  lookout
}

// relocateAll goes through the whole segment.
func (c *cleaning) relocateAll(rest func()) error {
	log := c.st.log
	if !log.InMemory(c.seg) {
		b, err := log.Load(c.seg)
		if err != nil {
			return err
		}
		c.cold = b
	}
	c.oldest = log.Oldest(c.seg.ID)
	c.lookForFloors()
	for off := uint32(0); off < c.seg.End(); {
		next, err := c.some(off)
		if err != nil && (!errors.Is(err, hlog.ErrNoRoom) || !c.st.awaitReserve()) {
			return err
		}
		off = next
		rest()
	}
	c.cold = nil // A cleaning may wait for its end, with many others.
	return nil
}

func (c *cleaning) drop() error {
	if c.st.pins(c.seg.ID) {
		if err := c.st.cool(c.seg); err != nil { // A checkpoint under way is made of it.
			return err
		}
	}
	if err := c.st.leaveTier(c.seg); err != nil {
		return err
	}
	if err := c.st.log.Remove(c.seg, c.st.named(c.seg.ID)); err != nil {
		return err
	}
	c.st.work.cleaned.Add(1)
	c.st.work.cleanedBytes.Add(int64(c.seg.End()))
	return nil
}

// keepSurvivors makes all that took the place of cleaned records as durable as
// they were: the copies, and what sessions wrote over them, which nobody may
// have sealed yet.
func (st *Store) keepSurvivors() error {
	st.log.SealAll()
	return st.log.Sync()
}

// some cleans a few entries from off on, inside one guard.
func (c *cleaning) some(off uint32) (uint32, error) {
	c.ss.Begin()
	defer c.ss.End()
	b := c.cold
	if b == nil {
		b = c.st.log.Bytes(c.seg)
	}
	for range cleanStep / batchKeys {
		next := c.approach(b, off)
		for i := range c.ahead.n {
			e := &c.ahead.entries[i]
			if err := c.entry(e.place, record.MakeAddress(c.seg.Slot, e.off), record.PtrOf(b[e.off:])); err != nil {
				return e.off, err
			}
		}
		off = next
	}
	return off, nil
}

// lookout is what a cleaning will look at next.
type lookout struct {
	n       int
	entries [batchKeys]struct {
		off   uint32
		place record.Place // of a put
	}
}

// approach lists the next entries from off on, and asks for what the index has
// of them. It returns where they end.
func (c *cleaning) approach(b []byte, off uint32) uint32 {
	c.ahead.n = 0
	for c.ahead.n < batchKeys && off < uint32(len(b)) {
		p := record.PtrOf(b[off:])
		e := &c.ahead.entries[c.ahead.n]
		e.off = off
		if isRecord(p) {
			e.place = placeOf(p)
			c.st.ix.Approach(e.place)
		}
		c.ahead.n++
		off += uint32(p.Length())
	}
	return off
}

func (c *cleaning) entry(place record.Place, a record.Address, p record.Ptr) error {
	switch p.Type() {
	case record.TypePut, record.TypeCompletion:
		return c.put(place, a, p)
	case record.TypeTombstone:
		return c.tombstone(a.Offset(), p)
	}
	return nil
}

// tombstone keeps a tombstone while older records of its key may be around. One below a floor
// is history: behind the floor it would count again.
func (c *cleaning) tombstone(off uint32, p record.Ptr) error {
	if c.above != nil && !c.above.Counts(off, record.PlaceOf(p.Table(), p.Key())) {
		return nil
	}
	if c.st.tables.byID(p.Table()) == nil || uint64(c.oldest) >= binary.LittleEndian.Uint64(p.Value()) && !c.settles(p) {
		return nil
	}
	h := c.st.log.Survivor()
	h.Lock()
	defer h.Unlock()
	_, room, err := h.Reserve(p.Length())
	if err != nil {
		return fmt.Errorf("relocate a tombstone: %w", err)
	}
	copy(room, p.Bytes())
	h.Keep(p.Length())
	h.NoteTombstone(p.Length())
	return nil
}

// settles tells whether a tombstone keeps a record away that may still arrive.
func (c *cleaning) settles(p record.Ptr) bool {
	return c.st.arriving.any() && c.st.arriving.has(record.PlaceOf(p.Table(), p.Key()))
}

// put relocates a live record, and drops a dead or expired one.
func (c *cleaning) put(place record.Place, a record.Address, p record.Ptr) error {
	for round := 0; ; round++ {
		var pr index.Probe
		if !isAt(c.st.ix, place, a, &pr) {
			return nil
		}
		done, err := c.move(place, a, p, &pr)
		if done || err != nil {
			return err
		}
		yield(round)
	}
}

// isAt looks for the index entry that points at a.
func isAt(ix *index.Index, place record.Place, a record.Address, pr *index.Probe) bool {
	ix.Seek(place, pr)
	for pr.Next() {
		if pr.Address() == a {
			return true
		}
	}
	return false
}

func (c *cleaning) move(place record.Place, a record.Address, p record.Ptr, pr *index.Probe) (done bool, err error) {
	switch {
	case pr.Locked():
		return false, nil
	case c.orphan(p):
		return c.st.ix.Remove(pr), nil
	case c.st.foreign(p):
		return c.relocate(p, pr)
	case c.forget && p.Table() != completionTable && !c.st.beingWritten(p):
		return c.forgetRecord(place, p, pr)
	case c.ss.expired(p) && !c.st.others(p):
		return c.expire(place, p, pr)
	}
	return c.relocate(p, pr)
}

// orphan tells whether a record's table is gone, or a chunk's record.
func (c *cleaning) orphan(p record.Ptr) bool {
	if p.Table() != chunkTable {
		return c.st.tables.byID(p.Table()) == nil
	}
	key, t, _, ok := chunkBody(p.Value())
	if !ok || c.st.tables.byID(t) == nil {
		return true
	}
	of, _ := chunkOf(p.Key())
	// To be asked first: its record may come at any moment. After a restart all of a value comes again that comes home.
	if c.st.beingWritten(p) && !(c.replay && of.log == c.st.opts.LogID) {
		return false
	}
	k := Key{Place: record.PlaceOf(t, key), Table: t, Bytes: key}
	var pr index.Probe
	parent, st := c.ss.find(&k, &pr)
	if st != OK {
		return st == NotFound
	}
	m, ok := decodeManifest(parent.Value())
	return !ok || !parent.Chunked() || m.of != of
}

// expire drops an expired record. Older records of its key may be around, so a
// tombstone takes its place in the log.
func (c *cleaning) expire(place record.Place, p record.Ptr, pr *index.Probe) (bool, error) {
	t := c.st.tables.byID(p.Table())
	if t == nil {
		return c.st.ix.Remove(pr), nil // Truncated this very moment.
	}
	k := Key{Place: place, Table: p.Table(), Bytes: p.Key(), in: t}
	switch st := c.ss.remove(&k, pr, p, versionOf(p)); st {
	case Conflict:
		return false, nil
	case OK:
		c.st.noteExpired(&k)
		return true, nil
	default:
		return false, c.ss.Err()
	}
}

// relocate copies a live record to the survivor head.
func (c *cleaning) relocate(p record.Ptr, pr *index.Probe) (bool, error) {
	at, n := pr.Address(), p.Length()
	h := c.st.log.Survivor()
	h.Lock()
	defer h.Unlock()
	a, room, err := h.Reserve(n)
	if err != nil {
		return false, fmt.Errorf("relocate a record: %w", err)
	}
	copy(room, p.Bytes())
	if !c.st.ix.Update(pr, a) {
		h.Undo(n)
		return false, nil
	}
	h.Keep(n)
	h.Died(at, uint32(n))
	c.st.work.relocated.Add(int64(n))
	return true, nil
}

// isRecord tells whether p is something that the index may point at.
func isRecord(p record.Ptr) bool {
	return p.Type() == record.TypePut || p.Type() == record.TypeCompletion
}

// placeOf is where the record p is indexed.
func placeOf(p record.Ptr) record.Place {
	switch p.Table() {
	case chunkTable:
		key, t, _, _ := chunkBody(p.Value())
		return chunkPlace(record.PlaceOf(t, key), p.Key())
	case completionTable:
		if key := p.Key(); len(key) == completionKeyBytes { // Else it only seems to be one, as in the midst of a value.
			return completionPlace(key)
		}
	}
	return record.PlaceOf(p.Table(), p.Key())
}
