package migrate

import (
	"context"
	"errors"
	"slices"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// known gives all records with the known bits of some places.
func (s *Source) known(ctx context.Context, c *peer.Call) (any, []byte, error) {
	var ask keys
	if err := ask.decode(c.Head); err != nil {
		return nil, nil, err
	}
	places, err := decodePlaces(c.Bulk)
	if err != nil {
		return nil, nil, err
	}
	_, shelf, err := s.given(ctx, ask.ID, c.From)
	if err != nil {
		return nil, nil, err
	}
	return shelf.giveUrgently(ctx, c, func(r *reader) (store.Unsent, store.Status) {
		return r.ss.PullKnown(places, ask.Cursor, urgentBytes, r.emit)
	})
}

// segments lists what a scan of the log has to read.
func (s *Source) segments(ctx context.Context, c *peer.Call) (any, []byte, error) {
	var ask transfer
	if err := c.Bind(&ask); err != nil {
		return nil, nil, err
	}
	_, shelf, err := s.given(ctx, ask.ID, c.From)
	if err != nil {
		return nil, nil, err
	}
	if err := shelf.enter(); err != nil {
		return nil, nil, err
	}
	defer shelf.leave()
	all := segments{Life: s.life}
	all.Old, all.Since = shelf.store.OldSegments()
	return all, nil, nil
}

// segment gives the next records of a migration in a segment. One that is gone has none: they are
// elsewhere in the log.
func (s *Source) segment(ctx context.Context, c *peer.Call) (any, []byte, error) {
	var ask segmentPull
	if err := ask.decode(c.Head); err != nil {
		return nil, nil, err
	}
	m, shelf, err := s.given(ctx, ask.ID, c.From)
	if err != nil {
		return nil, nil, err
	}
	ranges := Ranges(m.Ranges)
	for {
		from, err := shelf.segment(ask.Segment)
		if errors.Is(err, store.ErrSegmentGone) {
			return (&pulled{}).encode(), nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		head, bulk, err := shelf.give(ctx, c, &shelf.urgent, func(r *reader) (store.PullCursor, store.Status) {
			defer shelf.turn()()
			var answered func(store.Indirection)
			if ask.Answered {
				answered = r.refer
			}
			next, st := r.ss.PullSegment(from, ranges, ask.Cursor, int(ask.Bytes), r.emit, answered)
			ask.Cursor = next
			return next, st
		})
		if err != nil || ask.Cursor == (store.PullCursor{}) {
			shelf.forget(ask.Segment)
		}
		if !errors.Is(err, store.ErrSegmentGone) {
			return head, bulk, err
		}
	}
}

// loaded is a segment that is pulled from.
type loaded struct {
	id   record.SegmentID
	from *store.ReadSegment
}

// maxLoaded bounds the memory that pulls of cold segments take.
const maxLoaded = 8

// segment gets a segment, as the last pull of it left it if there was one.
func (s *Shelf) segment(id record.SegmentID) (*store.ReadSegment, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if one := s.take(id); one != nil {
		s.keep(one)
		return one.from, nil
	}
	from, err := s.store.ReadSegment(id)
	if err != nil {
		return nil, err
	}
	s.keep(&loaded{id, from})
	return from, nil
}

// take takes a segment off the list.
func (s *Shelf) take(id record.SegmentID) *loaded {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.read, func(l *loaded) bool { return l.id == id })
	if i < 0 {
		return nil
	}
	one := s.read[i]
	s.read = slices.Delete(s.read, i, i+1)
	return one
}

func (s *Shelf) keep(one *loaded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = append(s.read, one)
	if len(s.read) > maxLoaded {
		s.read = slices.Delete(s.read, 0, 1)
	}
}

// forget gives the memory of a segment back.
func (s *Shelf) forget(id record.SegmentID) { s.take(id) }
