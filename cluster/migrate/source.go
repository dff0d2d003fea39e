package migrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/background"
)

// Origin is the node that a Source answers for.
type Origin interface {
	// Yield gives the ranges of a migration away, unless that was done, and returns when nobody executes on them
	// here any more and all that was executed is in every copy of the log. It may be asked again. Clients wait since the moment that it
	// returns; none if it was done before.
	Yield(ctx context.Context, id ID, target view.NodeID, asked meta.Asked) (m meta.Migration, since time.Time, err error)
	// Sample notes for a moment which keys of a migration clients use; Sampled are those. It calls begun with
	// its ranges at first.
	Sample(ctx context.Context, id ID, target view.NodeID, begun func(view.Ranges) error) error
	Sampled(id ID, target view.NodeID) []store.ArrivingKey
	// Given returns a migration whose ranges this node has yielded, or whose target copies them.
	Given(ctx context.Context, id ID, target view.NodeID) (meta.Migration, error)
	// Returned waits until the node knows that a migration from it was undone.
	Returned(ctx context.Context, id ID) error
	// Shelf is what is read from, or why there is nothing.
	Shelf() (*Shelf, error)
	LateOrigin
}

// Source answers targets of migrations. It remembers nothing of them but where they have memory for entries, on one machine.
type Source struct {
	origin  Origin
	grounds grounds
	life    uint64 // tells this process of the node from others
}

// NewSource makes one that answers for a node.
func NewSource(o Origin) *Source { return &Source{origin: o, life: rand.Uint64()} }

// Handle answers the calls that come to s.
func (s *Source) Handle(to *peer.Server) {
	to.Handle(methodSample, s.sample)
	to.Handle(methodTransfer, s.transfer)
	to.Handle(methodReturned, s.returned)
	to.Handle(methodCopy, s.copy)
	to.Handle(methodChanges, s.changes)
	to.Handle(methodHandOver, s.handOver)
	// Targets have lines for these.
	to.HandleQuietly(methodPull, s.pull)
	to.HandleQuietly(methodLand, s.land)
	to.HandleQuietly(methodPullInto, s.pullInto)
	to.HandlePromptly(methodKeys, s.keys)
	to.HandlePromptly(methodKnown, s.known)
	to.Handle(methodSegments, s.segments)
	to.HandleInOrder(methodSegment, s.segment)
}

// errNotYet travels when a migration must wait for something else, and is not begun.
var errNotYet = peer.NewCode("migrate-not-yet", "the migration cannot begin yet")

// errOtherLife travels when what a scan of the log has read was read before the source started again: records that its cleaner had
// moved may be back where they were.
var errOtherLife = peer.NewCode("migrate-other-life", "the source has started again since its segments were listed: they are to be read again")

// transfer yields, and sends what goes with it.
func (s *Source) transfer(ctx context.Context, c *peer.Call) (any, []byte, error) {
	began := time.Now()
	var ask transfer
	if err := c.Bind(&ask); err != nil {
		return nil, nil, err
	}
	keys := s.origin.Sampled(ask.ID, c.From)
	before, sent, err := s.ahead(c, &ask, keys)
	if err != nil {
		return nil, nil, err
	}
	y := yielded{All: true}
	background.Promptly(func() { // Clients wait.
		var since time.Time
		if since, err = s.yield(ctx, c, &ask, keys, before, &sent, &y); err != nil {
			return
		}
		now := time.Now()
		y.Took = now.Sub(began)
		if !since.IsZero() {
			y.Closed = now.Sub(since)
		}
		if err = c.Send(y, nil); err == nil && y.Later {
			background.Ease()
			err = s.judgeRest(c, before, &sent, y.Until)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return y, nil, nil
}

// judgeRest tells what is outdated of that which nobody waits for, from a byte of what was sent ahead on.
func (s *Source) judgeRest(c *peer.Call, before *Shelf, sent *ahead, from uint32) error {
	shelf, leave, err := s.shelfFor(c)
	if err != nil {
		return err
	}
	defer leave()
	if shelf != before {
		return errShelfClosed
	}
	outdated, _, err := shelf.outdated(sent)
	if err != nil {
		return err
	}
	for i := range outdated {
		outdated[i][0] -= from
	}
	return c.Send(yielded{Later: true, Outdated: outdated}, nil)
}

// yield gives the ranges away and sends what goes with them: of keys what was not sent from the shelf before, or is not what it was. Of what was
// sent it leaves what is still to be judged. Clients wait since the moment that it returns; none if the ranges were given away before.
func (s *Source) yield(ctx context.Context, c *peer.Call, ask *transfer, keys []store.ArrivingKey, before *Shelf, sent *ahead, y *yielded) (since time.Time, err error) {
	m, since, err := s.origin.Yield(ctx, ask.ID, c.From, meta.Asked{From: ask.From, FromSegment: ask.Segment, Incarnation: ask.Incarnation})
	if errors.Is(err, meta.ErrNotYet) {
		return since, fmt.Errorf("%w: %w", errNotYet, err)
	}
	if err != nil {
		return since, err
	}
	shelf, leave, err := s.shelfFor(c)
	if err != nil {
		return since, err
	}
	defer leave()
	if ask.Ahead && shelf != before {
		return since, errShelfClosed // What was sent ahead is another log's.
	}
	if err := sendCompletions(ctx, c, shelf.store, m.Ranges); err != nil {
		return since, err
	}
	y.Ceiling = shelf.store.Ceiling()
	if ask.Ahead {
		hot, rest, until := *sent, ahead{}, uint32(0)
		if ask.Later {
			hot, rest, until = sent.part()
		}
		if y.Outdated, keys, err = shelf.outdated(&hot); err != nil {
			return since, err
		}
		*sent, y.Later, y.Until = rest, len(rest.keys) > 0, until
	}
	if err := shelf.sendKeys(keys, func(part []byte) error { return c.Send(yielded{}, part) }); err != nil {
		return since, err
	}
	if !ask.Counted {
		y.Bytes = shelf.bytesOf(m.Ranges)
	}
	return since, nil
}

// ahead sends keys before the source yields, if the target takes them so, and says from which shelf.
func (s *Source) ahead(c *peer.Call, ask *transfer, keys []store.ArrivingKey) (*Shelf, ahead, error) {
	if !ask.Ahead {
		return nil, ahead{}, nil
	}
	shelf, leave, err := s.shelfFor(c)
	if err != nil {
		return nil, ahead{}, err
	}
	defer leave()
	sent, err := shelf.sendAhead(keys, func(part []byte) error { return c.Send(yielded{Ahead: true}, part) })
	return shelf, sent, err
}

// shelfFor enters the shelf for a call that is answered in parts.
func (s *Source) shelfFor(c *peer.Call) (shelf *Shelf, leave func(), err error) {
	if shelf, err = s.origin.Shelf(); err == nil {
		leave, err = shelf.enterFor(c)
	}
	return shelf, leave, err
}

// sample notes what clients use. It goes with what is yielded: what it is now may be another thing by then.
func (s *Source) sample(ctx context.Context, c *peer.Call) (any, []byte, error) {
	var ask transfer
	if err := c.Bind(&ask); err != nil {
		return nil, nil, err
	}
	return sampled{}, nil, s.origin.Sample(ctx, ask.ID, c.From, func(ranges view.Ranges) error {
		shelf, leave, err := s.shelfFor(c)
		if err != nil {
			return err
		}
		defer leave()
		var said sampled
		said.Records, said.Bytes = shelf.store.Estimate(Ranges(ranges))
		return c.Send(said, nil)
	})
}

// returned answers when the source knows that it has the ranges back.
func (s *Source) returned(ctx context.Context, c *peer.Call) (any, []byte, error) {
	var ask transfer
	if err := c.Bind(&ask); err != nil {
		return nil, nil, err
	}
	return nil, nil, s.origin.Returned(ctx, ask.ID)
}

// pull gives the next entries of a range, from where they lie in the log.
func (s *Source) pull(ctx context.Context, c *peer.Call) (any, []byte, error) {
	var ask pull
	if err := ask.decode(c.Head); err != nil {
		return nil, nil, err
	}
	got, err := s.pulled(ctx, c, &ask, slot{}, true)
	if err != nil {
		return nil, nil, err
	}
	return got.pulled.encode(), nil, nil
}

// pulled answers a pull, and leaves the cursor of the next one in it. Entries go into a slot as long as they fit, and from where they lie to the
// wire after that.
func (s *Source) pulled(ctx context.Context, c *peer.Call, ask *pull, into slot, mayWait bool) (landed, error) {
	m, shelf, err := s.given(ctx, ask.ID, c.From)
	if err != nil {
		return landed{}, err
	}
	if !m.Ranges.Covers(view.RangesOf(ask.Range)) {
		return landed{}, fmt.Errorf("%s is no part of migration %d", ask.Range, m.ID)
	}
	if ask.Since != 0 && ask.Life != s.life {
		return landed{}, errOtherLife
	}
	return shelf.collect(ctx, c, &shelf.bulk, mayWait, func(r *reader) (store.PullCursor, store.Status) {
		defer shelf.turn()()
		r.into = into
		o := store.PullOptions{MaxBytes: int(ask.Bytes), Emit: r.emit, Known: r.know, Since: ask.Since}
		if ask.Indirect {
			o.Refer = r.refer
		}
		next, st := r.ss.PullWith(store.Range(ask.Range), ask.Cursor, o)
		ask.Cursor = next
		return next, st
	})
}

// urgentBytes is about how much of the first key an answer to a pull of keys has, and how much of all others: whoever waits for a small one
// waits for no more than that.
const urgentBytes = 256 << 10

// keys gives single keys.
func (s *Source) keys(ctx context.Context, c *peer.Call) (any, []byte, error) {
	var ask keys
	if err := ask.decode(c.Head); err != nil {
		return nil, nil, err
	}
	list, err := decodeKeys(c.Bulk)
	if err != nil {
		return nil, nil, err
	}
	m, shelf, err := s.given(ctx, ask.ID, c.From)
	if err != nil {
		return nil, nil, err
	}
	for _, k := range list {
		if !m.Ranges.Contains(k.Place) {
			return nil, nil, fmt.Errorf("a key that is no part of migration %d", m.ID)
		}
	}
	return shelf.giveUrgently(ctx, c, func(r *reader) (store.Unsent, store.Status) {
		return r.ss.PullKeys(list, ask.Cursor, urgentBytes, r.emit)
	})
}

func (s *Source) given(ctx context.Context, id ID, to view.NodeID) (meta.Migration, *Shelf, error) {
	m, err := s.origin.Given(ctx, id, to)
	if err != nil {
		return m, nil, err
	}
	shelf, err := s.origin.Shelf()
	return m, shelf, err
}
