package store

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// tidy cleans while much of the log is garbage and memory is not short. Nobody
// waits for it, so it rests for twice as long as it works: between some entries and the next, for a whole
// segment would have a core for ten milliseconds and more, and those who serve would wait.
func (st *Store) tidy(ctx context.Context) {
	for ctx.Err() == nil && !st.pressed() && st.garbage() > tidyGarbage {
		began, pace := time.Now(), background.Pace{Idle: tidyIdle}
		s := st.victim(tidyVictim, func(s *hlog.Segment) bool { return !st.sender.waits(s) })
		if s == nil {
			return
		}
		if err := st.cleanWith(func() { st.restUnlessPressed(&pace) }, s); err != nil {
			st.complain("cleaning failed", err, s)
			return
		}
		st.epoch.Drain()
		worked := time.Since(began) - pace.Rested
		background.Pause(ctx, min(tidyIdle*worked-pace.Rested, 100*time.Millisecond))
	}
}

// tidyIdle is how many times as long as it works tidy rests.
const tidyIdle = 2

// restUnlessPressed rests, unless somebody waits for memory by now.
func (st *Store) restUnlessPressed(p *background.Pace) {
	if st.pressed() {
		p.Skip()
		runtime.Gosched()
		return
	}
	p.Rest()
}

// garbage is the dead or unused share of the closed log.
func (st *Store) garbage() float64 {
	var used, live int64
	oldest := st.log.Oldest(0)
	for _, s := range st.log.Segments() {
		if s.Closed() && !s.Vacated() {
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
	if found := st.victims(1, least, ok); len(found) > 0 {
		return found[0].seg
	}
	return nil
}

// victim is a segment that is worth cleaning.
type victim struct {
	seg   *hlog.Segment
	live  int64 // bytes to copy
	score float64
}

// victims lists up to n segments that are worth cleaning, the best first.
func (st *Store) victims(n int, least float64, ok func(*hlog.Segment) bool) (best []victim) {
	now, oldest := st.opts.Now(), st.log.Oldest(0)
	for _, s := range st.log.Segments() {
		if !st.log.AtRest(s) || !ok(s) || s.Vacated() {
			continue
		}
		bytes := max(st.alive(s, oldest), 0)
		live := float64(bytes) / float64(st.opts.SegmentBytes)
		gain := st.gain(s, live)
		if gain < least {
			continue
		}
		age := float64(max(now-s.Created(), 1))
		v := victim{s, bytes, gain * age / (1 + live)}
		at := len(best)
		for at > 0 && best[at-1].score < v.score {
			at--
		}
		if at < n {
			best = slices.Insert(best, at, v)[:min(len(best)+1, n)]
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
