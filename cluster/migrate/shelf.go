package migrate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// Shelf is a store that targets read from. It lends sessions, so that a pull need not make one, and has
// all of them back before the store closes.
type Shelf struct {
	store *store.Store

	turns chan struct{} // has one of each pull that looks for entries

	// Pulls are quiet, and may be off their core with a lock: so what others wait for has other ones.
	bulk, urgent readers

	closing context.Context // is over when Close begins
	hangUp  context.CancelFunc

	mu     sync.RWMutex
	read   []*loaded // cold segments that are pulled from, the last used last
	users  sync.WaitGroup
	closed bool
}

// readers are those that nobody uses.
type readers struct {
	mu   sync.Mutex
	free []*reader
}

// turn lets one pull at a time look for entries, or as many as may; the result ends it.
func (s *Shelf) turn() func() {
	s.turns <- struct{}{}
	return func() { <-s.turns }
}

// NewShelf makes a shelf of a store.
func NewShelf(st *store.Store) *Shelf {
	s := &Shelf{store: st, turns: make(chan struct{}, atOnce())}
	s.closing, s.hangUp = context.WithCancel(context.Background())
	return s
}

// atOnce is how many modest goroutines of a node pull or replay at a time: the other processors are for clients, and
// for what they wait for. Clients go before them on any processor, so there are two even where there are few: a kernel leaves a processor
// idle for a while rather than have it fetch the one that waits for another.
func atOnce() int { return max(2, runtime.NumCPU()/4) }

var errShelfClosed = errors.New("the node is stopping or begins another log: ask again")

// reader is a session with memory for the entries of one answer.
type reader struct {
	ss      *store.Session
	entries [][]byte
	cold    []byte // indirections
	records uint32
	into    slot         // memory of the target, for as many entries as it takes
	landed  int          // bytes there
	known   int          // bytes of their places there
	place   record.Place // what is known of that of the next entry
}

// emit takes an entry for the answer. They stay in order: one that does not fit has all that follow it go over the wire.
func (r *reader) emit(entry []byte) {
	r.records++
	if end := r.landed + len(entry); end <= len(r.into.entries) && r.known < len(r.into.known) && len(r.entries) == 0 {
		copy(r.into.entries[r.landed:], entry)
		binary.LittleEndian.PutUint64(r.into.known[r.known:], uint64(r.place))
		r.landed, r.known = end, r.known+slotPlace
		return
	}
	r.entries = append(r.entries, entry)
}

// know takes what is known of the place of the next entry.
func (r *reader) know(p record.Place) { r.place = p }

// refer takes an indirection for it.
func (r *reader) refer(i store.Indirection) { r.cold = appendIndirection(r.cold, i) }

func (r *reader) reset() {
	clear(r.entries)
	r.entries, r.cold = r.entries[:0], r.cold[:0]
	r.records, r.into, r.landed, r.known, r.place = 0, slot{}, 0, 0, 0
}

func (s *Shelf) enter() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errShelfClosed
	}
	s.users.Add(1)
	return nil
}

func (s *Shelf) leave() { s.users.Done() }

// enterFor is enter for a call that is answered in parts. Its target may not read them for a minute: it is hung up on when the shelf
// closes. It asks again, as one does that was refused. The result is for leave.
func (s *Shelf) enterFor(c *peer.Call) (leave func(), err error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(s.closing, c.HangUp)
	return func() {
		stop()
		s.leave()
	}, nil
}

// bytesOf estimates what the store has of some places.
func (s *Shelf) bytesOf(ranges view.Ranges) int64 {
	_, bytes := s.store.Estimate(Ranges(ranges))
	return bytes
}

// Survey is the store's, while that is there: nothing is told of one that is about to be closed.
func (s *Shelf) Survey(n int, tell func(p record.Place, bytes int64)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.store.Survey(n, tell)
	return nil
}

func (s *Shelf) borrow(from *readers) (*reader, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	if r := from.take(); r != nil {
		return r, nil
	}
	ss, err := s.store.NewSession()
	if err != nil {
		s.leave()
		return nil, err
	}
	return &reader{ss: ss}, nil
}

func (rs *readers) take() *reader {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	last := len(rs.free) - 1
	if last < 0 {
		return nil
	}
	r := rs.free[last]
	rs.free = rs.free[:last]
	return r
}

func (s *Shelf) giveBack(r *reader, to *readers) {
	r.reset()
	to.mu.Lock()
	to.free = append(to.free, r)
	to.mu.Unlock()
	s.leave()
}

// Close waits until nobody reads any more. It waits for no target.
func (s *Shelf) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.hangUp()
	s.users.Wait()
	for _, rs := range []*readers{&s.bulk, &s.urgent} {
		for _, r := range rs.free {
			r.ss.Close()
		}
		rs.free = nil
	}
	s.read = nil
}

// give answers with what take emits.
func (s *Shelf) give(ctx context.Context, c *peer.Call, by *readers, take func(*reader) (store.PullCursor, store.Status)) (any, []byte, error) {
	got, err := s.collect(ctx, c, by, true, take)
	if err != nil {
		return nil, nil, err
	}
	return got.pulled.encode(), nil, nil
}

// giveUrgently answers with what take emits for operations that wait, and says what it has not given.
func (s *Shelf) giveUrgently(ctx context.Context, c *peer.Call, take func(*reader) (store.Unsent, store.Status)) (any, []byte, error) {
	var said gave
	got, err := s.collect(ctx, c, &s.urgent, true, func(r *reader) (next store.PullCursor, st store.Status) {
		said.Unsent, st = take(r)
		return said.Next, st
	})
	if err != nil {
		return nil, nil, err
	}
	said.Records = got.Records
	return said.encode(), nil, nil
}

// collect makes what take emits the bulk of the answer, if it is not in a slot, and returns what its head says. The entries are sent from where they lie:
// the session's guard keeps them there until they are on their way, or copied because the target does not take them. What is
// cold is read first, if it may wait for that.
func (s *Shelf) collect(ctx context.Context, c *peer.Call, by *readers, mayWait bool, take func(*reader) (store.PullCursor, store.Status)) (landed, error) {
	r, err := s.borrow(by)
	if err != nil {
		return landed{}, err
	}
	for {
		r.ss.Begin()
		next, st := take(r)
		if st == store.OK || st == store.Cold && r.records > 0 && next != (store.PullCursor{}) {
			head := landed{pulled{Cursor: next, Records: r.records, Cold: uint32(len(r.cold) / indirectionBytes)}, uint32(r.landed)}
			if len(r.cold) > 0 {
				r.entries = append(r.entries, r.cold)
			}
			end := func() {
				r.ss.End()
				s.giveBack(r, by)
			}
			if len(r.entries) == 0 {
				end()
			} else {
				c.Gather(r.entries, end)
			}
			return head, nil
		}
		r.ss.End()
		r.reset()
		if st == store.Cold && !mayWait {
			err = errCold
		} else if st == store.Cold {
			err = errors.Join(c.Flush(), s.readCold(ctx, r)) // Others' guards wait for no disk either.
		} else {
			err = errors.Join(errors.New("read what is pulled"), r.ss.Err())
		}
		if err != nil {
			s.giveBack(r, by)
			return landed{}, err
		}
	}
}

// errCold says that a pull would have had to wait for a disk, and was not to.
var errCold = errors.New("what is pulled is cold")

// readCold reads what was cold.
func (s *Shelf) readCold(ctx context.Context, r *reader) error {
	err := r.ss.Fetch(ctx)
	if err == nil || ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", errUnreadable, err)
}

// What goes with a yielding, and how much of one key: operations wait for all of it. Whose value is larger is asked for when it is
// needed, and only those who need it wait.
const (
	sampleBytes = 1 << 20
	sampleEntry = 16 << 10
)

// goesAlong tells whether an entry goes with a yielding, after so many bytes of others.
func goesAlong(entry []byte, after int) bool {
	return len(entry) <= sampleEntry && after+len(entry) <= sampleBytes
}

// sendKeys sends the entries of keys in parts. Those that are large or not in memory are left out: operations wait meanwhile,
// and would wait for them, or for a disk.
func (s *Shelf) sendKeys(list []store.ArrivingKey, send func(part []byte) error) error {
	if len(list) == 0 {
		return nil
	}
	r, err := s.borrow(&s.urgent)
	if err != nil {
		return err
	}
	defer s.giveBack(r, &s.urgent)
	var part []byte
	taken := 0
	take := func(entry []byte) {
		if goesAlong(entry, taken) {
			part, taken = append(part, entry...), taken+len(entry)
		}
	}
	for at, more := (store.PullCursor{}), true; more; {
		r.ss.Begin()
		next, st := r.ss.PullSmallKeys(list, at, partBytes, take)
		r.ss.End()
		switch st {
		case store.OK:
			more = next != (store.PullCursor{})
		case store.Cold:
			next = store.PullCursor{At: next.At + 1}
			more = next.At < uint64(len(list))
		default:
			return r.ss.Err()
		}
		at = next
		if len(part) >= partBytes || !more && len(part) > 0 {
			if err := send(part); err != nil {
				return err
			}
			part = part[:0]
		}
	}
	return nil
}
