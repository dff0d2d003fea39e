package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"time"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
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

// dropDead drops segments in which nothing is alive.
func (st *Store) dropDead() {
	for _, s := range st.log.Segments() {
		if s.Closed() && st.log.Live(s) <= 0 {
			if err := st.clean(s); err != nil {
				st.opts.Logger.Error("a dead segment could not be dropped", "segment", s.ID, "error", err)
			}
		}
	}
}

// tidy cleans while much of the log is garbage and memory is not short. Nobody
// waits for it, so it rests for twice as long as it works.
func (st *Store) tidy(ctx context.Context) {
	for ctx.Err() == nil && !st.pressed() && st.garbage() > tidyGarbage {
		began := time.Now()
		s := st.victim(tidyVictim, func(*hlog.Segment) bool { return true })
		if s == nil {
			return
		}
		if err := st.clean(s); err != nil {
			st.opts.Logger.Error("cleaning failed", "segment", s.ID, "error", err)
			return
		}
		st.epoch.Drain()
		pauseFor(ctx, min(2*time.Since(began), 100*time.Millisecond))
	}
}

// garbage is the dead or unused share of the closed log.
func (st *Store) garbage() float64 {
	var used, live int64
	oldest := st.log.Oldest(0)
	for _, s := range st.log.Segments() {
		if s.Closed() {
			used += int64(st.opts.SegmentBytes)
			live += st.alive(s, oldest)
		}
	}
	if used < 8*int64(st.opts.SegmentBytes) {
		return 0
	}
	return 1 - float64(live)/float64(used)
}

// victim chooses the segment whose cleaning pays most, if any holds at least
// that much garbage.
func (st *Store) victim(least float64, ok func(*hlog.Segment) bool) *hlog.Segment {
	var best *hlog.Segment
	var bestScore float64
	now, oldest := st.opts.Now(), st.log.Oldest(0)
	for _, s := range st.log.Segments() {
		if !s.Closed() || !ok(s) {
			continue
		}
		live := max(float64(st.alive(s, oldest)), 0) / float64(st.opts.SegmentBytes)
		gain := st.gain(s, live)
		if gain < least {
			continue
		}
		age := float64(max(now-s.Created(), 1))
		if score := gain * age / (1 + live); score > bestScore {
			best, bestScore = s, score
		}
	}
	return best
}

// gain is the share of a segment that cleaning would free. A little room at its
// end does not count: the copies would leave as much, and the next cleaning
// would gain nothing again, for ever.
func (st *Store) gain(s *hlog.Segment, live float64) float64 {
	used := float64(s.End()) / float64(st.opts.SegmentBytes)
	if 1-used > 0.125 {
		return 1 - live
	}
	return used - live
}

// alive is what cleaning s would have to copy. Its tombstones are not part of
// it once everything they could refer to is gone.
func (st *Store) alive(s *hlog.Segment, oldest record.SegmentID) int64 {
	live := st.log.Live(s)
	if s.ID == oldest {
		oldest = st.log.Oldest(s.ID)
	}
	if s.Horizon() <= oldest {
		live -= s.Tombstones.Load()
	}
	return live
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

func (st *Store) cleanInMemory(least float64) bool {
	s := st.victim(least, st.log.InMemory)
	if s == nil {
		return false
	}
	if err := st.clean(s); err != nil {
		st.opts.Logger.Error("cleaning failed", "segment", s.ID, "error", err)
		return false
	}
	return true
}

// spillOldest takes the oldest segment out of memory, to its file.
func (st *Store) spillOldest() bool {
	for _, s := range st.log.Segments() {
		if !s.Closed() || !st.log.InMemory(s) {
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

// clean relocates what is alive in a closed segment and drops it.
func (st *Store) clean(s *hlog.Segment) error {
	st.freeze(s)
	c := cleaning{st: st, ss: st.keeper, seg: s}
	return c.run()
}

// cleaning is the work on one segment.
type cleaning struct {
	st     *Store
	ss     *Session
	seg    *hlog.Segment
	cold   []byte // the segment's bytes, if they are not in memory
	forget bool   // drop live records too
	oldest record.SegmentID
}

func (c *cleaning) run() error {
	c.st.cleaning.Lock()
	defer c.st.cleaning.Unlock()
	log := c.st.log
	if !log.InMemory(c.seg) {
		b, err := log.Load(c.seg)
		if err != nil {
			return err
		}
		c.cold = b
	}
	c.oldest = log.Oldest(c.seg.ID)
	for off := uint32(0); off < c.seg.End(); {
		next, err := c.some(off)
		if err != nil {
			return err
		}
		off = next
		runtime.Gosched()
	}
	if err := c.keepSurvivors(); err != nil {
		return err
	}
	if c.st.pins(c.seg.ID) {
		if err := c.st.cool(c.seg); err != nil { // A checkpoint under way is made of it.
			return err
		}
	}
	if err := c.st.leaveTier(c.seg); err != nil {
		return err
	}
	c.st.work.cleaned.Add(1)
	c.st.work.cleanedBytes.Add(int64(c.seg.End()))
	return log.Remove(c.seg, c.st.named(c.seg.ID))
}

// keepSurvivors makes all that took the place of the segment's records as
// durable as they were: the copies, and what sessions wrote over them, which
// nobody may have sealed yet.
func (c *cleaning) keepSurvivors() error {
	c.st.log.SealAll()
	return c.st.log.Sync()
}

// some cleans a few entries from off on, inside one guard.
func (c *cleaning) some(off uint32) (uint32, error) {
	c.ss.Begin()
	defer c.ss.End()
	b := c.cold
	if b == nil {
		b = c.st.log.Bytes(c.seg)
	}
	for range cleanStep {
		if off >= uint32(len(b)) {
			break
		}
		p := record.PtrOf(b[off:])
		if err := c.entry(record.MakeAddress(c.seg.Slot, off), p); err != nil {
			return off, err
		}
		off += uint32(p.Length())
	}
	return off, nil
}

func (c *cleaning) entry(a record.Address, p record.Ptr) error {
	switch p.Type() {
	case record.TypePut:
		return c.put(a, p)
	case record.TypeTombstone:
		return c.tombstone(p)
	}
	return nil
}

// tombstone keeps a tombstone while older records of its key may be around.
func (c *cleaning) tombstone(p record.Ptr) error {
	if c.st.tables.byID(p.Table()) == nil || uint64(c.oldest) >= binary.LittleEndian.Uint64(p.Value()) {
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

// put relocates a live record, and drops a dead or expired one.
func (c *cleaning) put(a record.Address, p record.Ptr) error {
	place := placeOf(p)
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
	case c.forget && !c.st.beingWritten(p):
		return c.forgetRecord(place, p, pr)
	case c.ss.expired(p):
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
	if c.st.beingWritten(p) { // To be asked first: its record may come at any moment.
		return false
	}
	k := Key{Place: record.PlaceOf(t, key), Table: t, Bytes: key}
	var pr index.Probe
	parent, st := c.ss.find(&k, &pr)
	if st != OK {
		return st == NotFound
	}
	m, ok := decodeManifest(parent.Value())
	return !ok || !parent.Chunked() || m.id != binary.LittleEndian.Uint64(p.Key())
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
		c.st.work.expired.Add(1)
		return true, nil
	default:
		return false, c.ss.Err()
	}
}

// relocate copies a live record to the survivor head.
func (c *cleaning) relocate(p record.Ptr, pr *index.Probe) (bool, error) {
	n := p.Length()
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
	c.st.work.relocated.Add(int64(n))
	return true, nil
}

// placeOf is where the record p is indexed.
func placeOf(p record.Ptr) record.Place {
	if p.Table() != chunkTable {
		return record.PlaceOf(p.Table(), p.Key())
	}
	key, t, _, _ := chunkBody(p.Value())
	return chunkPlace(record.PlaceOf(t, key), p.Key())
}
