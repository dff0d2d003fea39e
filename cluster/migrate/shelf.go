package migrate

import (
	"context"
	"errors"
	"sync"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/engine/store"
)

// Shelf is a store that targets read from. It lends sessions, so that a pull need not make one, and has
// all of them back before the store closes.
type Shelf struct {
	store *store.Store
	share func() float64 // of all keys that the store has

	turn sync.Mutex // held by a pull while it looks for entries

	mu     sync.Mutex
	free   []*reader
	read   []*loaded // cold segments that are pulled from, the last used last
	users  sync.WaitGroup
	closed bool
}

// NewShelf makes a shelf of a store. share tells how much of all places the store has.
func NewShelf(st *store.Store, share func() float64) *Shelf { return &Shelf{store: st, share: share} }

var errShelfClosed = errors.New("the node is stopping or begins another log: ask again")

// reader is a session with memory for the entries of one answer.
type reader struct {
	ss      *store.Session
	entries [][]byte
	cold    []byte // indirections
}

// emit takes an entry for the answer.
func (r *reader) emit(entry []byte) { r.entries = append(r.entries, entry) }

// refer takes an indirection for it.
func (r *reader) refer(i store.Indirection) { r.cold = appendIndirection(r.cold, i) }

func (r *reader) reset() {
	clear(r.entries)
	r.entries, r.cold = r.entries[:0], r.cold[:0]
}

func (s *Shelf) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errShelfClosed
	}
	s.users.Add(1)
	return nil
}

func (s *Shelf) leave() { s.users.Done() }

func (s *Shelf) borrow() (*reader, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	last := len(s.free) - 1
	if last >= 0 {
		r := s.free[last]
		s.free = s.free[:last]
		s.mu.Unlock()
		return r, nil
	}
	s.mu.Unlock()
	ss, err := s.store.NewSession()
	if err != nil {
		s.leave()
		return nil, err
	}
	return &reader{ss: ss}, nil
}

func (s *Shelf) giveBack(r *reader) {
	r.reset()
	s.mu.Lock()
	s.free = append(s.free, r)
	s.mu.Unlock()
	s.leave()
}

// Close waits until nobody reads any more.
func (s *Shelf) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.users.Wait()
	for _, r := range s.free {
		r.ss.Close()
	}
	s.free, s.read = nil, nil
}

// give answers with what take emits. The entries are sent from where they lie: the session's guard keeps them
// there until they are on their way. What is cold is read first.
func (s *Shelf) give(ctx context.Context, c *peer.Call, take func(*reader) (store.PullCursor, store.Status)) (any, []byte, error) {
	r, err := s.borrow()
	if err != nil {
		return nil, nil, err
	}
	for {
		r.ss.Begin()
		next, st := take(r)
		if st == store.OK || st == store.Cold && len(r.entries) > 0 && next != (store.PullCursor{}) {
			head := pulled{Cursor: next, Records: uint32(len(r.entries)), Cold: uint32(len(r.cold) / indirectionBytes)}
			if len(r.cold) > 0 {
				r.entries = append(r.entries, r.cold)
			}
			c.Gather(r.entries, func() {
				r.ss.End()
				s.giveBack(r)
			})
			return head.encode(), nil, nil
		}
		r.ss.End()
		r.reset()
		if st == store.Cold {
			err = r.ss.Fetch(ctx)
		} else {
			err = errors.Join(errors.New("read what is pulled"), r.ss.Err())
		}
		if err != nil {
			s.giveBack(r)
			return nil, nil, err
		}
	}
}

// sendKeys sends the entries of keys in parts of an answer.
func (s *Shelf) sendKeys(ctx context.Context, c *peer.Call, list []store.ArrivingKey) error {
	if len(list) == 0 {
		return nil
	}
	r, err := s.borrow()
	if err != nil {
		return err
	}
	defer s.giveBack(r)
	for at := (store.PullCursor{}); ; {
		var part []byte
		r.ss.Begin()
		next, st := r.ss.PullKeys(list, at, partBytes, func(entry []byte) { part = append(part, entry...) })
		r.ss.End()
		switch st {
		case store.OK:
		case store.Cold:
			err = r.ss.Fetch(ctx)
		default:
			err = r.ss.Err()
		}
		if err == nil && len(part) > 0 {
			err = c.Send(yielded{}, part)
		}
		if err != nil || st == store.OK && next == (store.PullCursor{}) {
			return err
		}
		at = next
	}
}
