package store_test

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/store"
)

const (
	counters = 3
	accounts = 6
	opening  = 1000 // of every account
)

// sums are what all sessions write: counters that each adds to, three keys that
// every transaction counts up together, and accounts between which transactions
// move money.
type sums struct {
	w     *world
	count [counters + 1]tally // the last one: the keys that are counted together
}

// tally tells how often something was counted up.
type tally struct{ issued, acked, synced atomic.Int64 }

// sumMark is a counted step that awaits its acknowledgement.
type sumMark struct{ of *tally }

func (m sumMark) acknowledge() { m.of.acked.Add(1) }

type sumBounds struct {
	least, most []int64
}

func (s *sums) open(w *world) {
	s.w = w
	ss := w.owners[0].ss
	for n := range accounts {
		k := ss.Key(0, accountKey(n))
		if st := until(w.t, ss, func() store.Status {
			return ss.Put(&k, store.Write{Value: u64(opening)}, nil)
		}); st != store.OK {
			w.t.Fatal(st, ss.Err())
		}
	}
	if err := ss.WaitDurable(ss.Seal()); err != nil {
		w.t.Fatal(err)
	}
	w.sync()
}

func counterKey(n int) []byte  { return fmt.Appendf(nil, "counts:%d", n) }
func togetherKey(n int) []byte { return fmt.Appendf(nil, "together:%d", n) }
func accountKey(n int) []byte  { return fmt.Appendf(nil, "account:%d", n) }

func (s *sums) each(f func(*tally) *atomic.Int64) (all []int64) {
	for i := range s.count {
		all = append(all, f(&s.count[i]).Load())
	}
	return all
}

func (s *sums) issued() []int64 { return s.each(func(t *tally) *atomic.Int64 { return &t.issued }) }
func (s *sums) acked() []int64  { return s.each(func(t *tally) *atomic.Int64 { return &t.acked }) }

func (s *sums) least(synced bool) []int64 {
	if synced {
		return s.each(func(t *tally) *atomic.Int64 { return &t.synced })
	}
	return s.acked()
}

func (s *sums) noteSynced(acked []int64) {
	for i, n := range acked {
		raise(&s.count[i].synced, n)
	}
}

// operate does something with what is shared.
func (s *sums) operate(o *owner) {
	switch o.rng.IntN(3) {
	case 0:
		s.add(o, o.rng.IntN(counters))
	case 1:
		s.together(o)
	default:
		s.transfer(o)
	}
}

func (s *sums) add(o *owner, n int) {
	t := &s.count[n]
	t.issued.Add(1)
	k := o.ss.Key(0, counterKey(n))
	st := o.run(func() store.Status {
		if o.rng.IntN(2) == 0 {
			_, st := o.ss.Count(0, k.Bytes, 1)
			return st
		}
		return o.ss.RMW(&k, func(old *store.View, exists bool) (store.Write, bool) {
			return store.Write{Value: u64(number(old.Value) + 1)}, true
		})
	})
	s.counted(o, t, st)
}

// number is a counter's value; an absent one is zero.
func number(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (s *sums) counted(o *owner, t *tally, st store.Status) {
	if st != store.OK {
		t.issued.Add(-1)
		s.w.t.Errorf("count: %v %v", st, o.ss.Err())
		return
	}
	o.sums = append(o.sums, sumMark{t})
}

// together counts three keys up in one transaction.
func (s *sums) together(o *owner) {
	t := &s.count[counters]
	t.issued.Add(1)
	st := o.run(func() store.Status {
		keys := []store.Key{o.ss.Key(0, togetherKey(0)), o.ss.Key(0, togetherKey(1)), o.ss.Key(0, togetherKey(2))}
		if st := o.ss.Lock(keys); st != store.OK {
			return st
		}
		var seen []uint64
		for i := range keys {
			v, _ := o.ss.Get(&keys[i])
			seen = append(seen, number(v.Value))
			o.ss.Put(&keys[i], store.Write{Value: u64(number(v.Value) + 1)}, nil)
		}
		if seen[0] != seen[1] || seen[1] != seen[2] {
			s.w.t.Errorf("a transaction saw %v in keys that are always equal", seen)
		}
		return o.ss.Commit()
	})
	s.counted(o, t, st)
}

// transfer moves money between two accounts, and looks at all of them.
func (s *sums) transfer(o *owner) {
	amount := uint64(o.rng.IntN(10))
	pair := o.rng.Perm(accounts)
	st := o.run(func() store.Status {
		var keys []store.Key
		for n := range accounts {
			keys = append(keys, o.ss.Key(0, accountKey(n)))
		}
		if o.rng.IntN(4) > 0 {
			keys = []store.Key{keys[pair[0]], keys[pair[1]]}
		}
		if st := o.ss.Lock(keys); st != store.OK {
			return st
		}
		if len(keys) == accounts {
			var sum uint64
			for i := range keys {
				v, _ := o.ss.Get(&keys[i])
				sum += number(v.Value)
			}
			if sum != accounts*opening {
				s.w.t.Errorf("a transaction saw a sum of %d, want %d", sum, accounts*opening)
			}
		}
		from, _ := o.ss.Get(&keys[0])
		to, _ := o.ss.Get(&keys[1])
		a, b := u64(number(from.Value)-amount), u64(number(to.Value)+amount)
		o.ss.Put(&keys[0], store.Write{Value: a}, nil)
		o.ss.Put(&keys[1], store.Write{Value: b}, nil)
		return o.ss.Commit()
	})
	if st != store.OK {
		s.w.t.Errorf("transfer: %v %v", st, o.ss.Err())
	}
}

// check compares what is there to what may be.
func (s *sums) check(what string, ss *store.Session, b sumBounds) {
	s.w.t.Helper()
	got := s.read(ss)
	for i, n := range got[:counters+1] {
		if n < b.least[i] || n > b.most[i] {
			s.w.t.Fatalf("%s: count %d is %d, must be within %d and %d", what, i, n, b.least[i], b.most[i])
		}
	}
	if got[counters] != got[counters+1] || got[counters] != got[counters+2] {
		s.w.t.Fatalf("%s: keys of one transaction are %v", what, got[counters:counters+3])
	}
	if sum := s.balance(ss); sum != accounts*opening {
		s.w.t.Fatalf("%s: accounts hold %d, want %d", what, sum, accounts*opening)
	}
}

// read gives the counters, then the keys that are counted together.
func (s *sums) read(ss *store.Session) (all []int64) {
	for n := range counters {
		all = append(all, int64(number(readKey(s.w.t, ss, 0, counterKey(n)))))
	}
	for n := range 3 {
		all = append(all, int64(number(readKey(s.w.t, ss, 0, togetherKey(n)))))
	}
	return all
}

func (s *sums) balance(ss *store.Session) (sum uint64) {
	for n := range accounts {
		sum += number(readKey(s.w.t, ss, 0, accountKey(n)))
	}
	return sum
}

// restart takes what is there for what always was.
func (s *sums) restart(ss *store.Session) {
	got := s.read(ss)
	for i := range s.count {
		t := &s.count[i]
		t.issued.Store(got[i])
		t.acked.Store(got[i])
		t.synced.Store(got[i])
	}
	s.level(ss)
}

// level gives every account what it opened with: where power was lost, money
// may have been.
func (s *sums) level(ss *store.Session) {
	for n := range accounts {
		k := ss.Key(0, accountKey(n))
		until(s.w.t, ss, func() store.Status { return ss.Put(&k, store.Write{Value: u64(opening)}, nil) })
	}
	if err := ss.WaitDurable(ss.Seal()); err != nil {
		s.w.t.Fatal(err)
	}
}
