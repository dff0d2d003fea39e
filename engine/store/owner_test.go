package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/ostrodb/ostro/engine/store"
)

// owner is a session with a database that no other session writes to, so that
// the order of its keys' fates is known.
type owner struct {
	w    *world
	db   int
	rng  *rand.Rand
	ss   *store.Session
	keys []*history
	acks []ack
	done []mark // fates of this round
	seq  int
	sums []sumMark // shared sums of this round
}

// ack is a round whose reply waits for its ticket.
type ack struct {
	ticket store.Ticket
	marks  []mark
	sums   []sumMark
}

const ownedKeys = 24

func newOwner(w *world, db int, rng *rand.Rand) *owner {
	o := &owner{w: w, db: db, rng: rng}
	for n := range ownedKeys {
		h := &history{key: fmt.Appendf(nil, "own:%d:%d", db, n), fates: []fate{{}}}
		o.keys = append(o.keys, h)
	}
	return o
}

// step is a round of a few operations.
func (o *owner) step() {
	o.ss.Begin()
	for range 1 + o.rng.IntN(4) {
		o.operate()
	}
	o.seal()
	o.ss.End()
	o.collect(o.rng.IntN(3) == 0)
	if o.rng.IntN(8) == 0 {
		o.w.clock.Add(o.rng.Int64N(10))
	}
}

// seal ends the batch; its fates are acknowledged once the ticket says so.
func (o *owner) seal() {
	o.acks = append(o.acks, ack{o.ss.Seal(), o.done, o.sums})
	o.done, o.sums = nil, nil
}

// collect acknowledges what is durable, and all there is if it may wait.
func (o *owner) collect(wait bool) {
	for len(o.acks) > 0 {
		a := o.acks[0]
		if wait {
			if err := o.ss.WaitDurable(a.ticket); err != nil {
				o.w.t.Errorf("wait for a ticket: %v", err)
				return
			}
		}
		if !o.ss.Durable(a.ticket) {
			return
		}
		for _, m := range a.marks {
			raise(&m.of.acked, int64(m.fate))
		}
		for _, m := range a.sums {
			m.acknowledge()
		}
		o.acks = o.acks[1:]
	}
}

// settle waits until all is acknowledged.
func (o *owner) settle() { o.collect(true) }

// run does an operation inside the round, again while it is cold.
func (o *owner) run(f func() store.Status) store.Status {
	for {
		s := f()
		if s != store.Cold {
			return s
		}
		o.seal()
		o.ss.End()
		if err := o.ss.Fetch(context.Background()); err != nil {
			o.w.t.Errorf("fetch: %v", err)
			o.ss.Begin()
			return store.Failed
		}
		o.ss.Begin()
	}
}

// issued runs f, which makes f the fate of h, or nothing if it fails.
func (o *owner) issued(h *history, f fate, act func() store.Status) store.Status {
	i := h.issue(f)
	s := o.run(act)
	switch s {
	case store.OK, store.NotFound:
		o.done = append(o.done, mark{h, i})
	default:
		h.withdraw()
	}
	return s
}

func (o *owner) operate() {
	h := o.keys[o.rng.IntN(len(o.keys))]
	switch n := o.rng.IntN(100); {
	case n < 40:
		o.put(h, o.rng.IntN(200), 0)
	case n < 50:
		o.put(h, o.rng.IntN(200), o.w.clock.Load()+1+o.rng.Int64N(30))
	case n < 65:
		o.remove(h)
	case n < 75:
		o.modify(h)
	case n < 80:
		o.put(h, o.w.opts.SegmentBytes/32+o.rng.IntN(o.w.opts.SegmentBytes/4), 0)
	case n < 90:
		o.transact()
	case n < 99:
		o.w.shared.operate(o)
	default:
		if o.rng.IntN(5) == 0 {
			o.truncate()
		}
	}
}

// value makes a value that no other write has, of at least n bytes.
func (o *owner) value(h *history, n int) []byte {
	o.seq++
	v := fmt.Appendf(nil, "%s#%d:", h.key, o.seq)
	for i := range n {
		v = append(v, byte('a'+(o.seq+i)%26))
	}
	return v
}

func (o *owner) put(h *history, n int, expire int64) {
	v := o.value(h, n)
	k := o.ss.Key(o.db, h.key)
	s := o.issued(h, fate{v, expire}, func() store.Status {
		return o.ss.Put(&k, store.Write{Value: v, ExpireAt: expire}, nil)
	})
	if s != store.OK {
		o.w.t.Errorf("put %s: %v %v", h.key, s, o.ss.Err())
	}
}

func (o *owner) remove(h *history) {
	k := o.ss.Key(o.db, h.key)
	s := o.issued(h, fate{}, func() store.Status { return o.ss.Delete(&k, nil) })
	if s != store.OK && s != store.NotFound {
		o.w.t.Errorf("delete %s: %v %v", h.key, s, o.ss.Err())
	}
}

// modify appends to a value.
func (o *owner) modify(h *history) {
	k := o.ss.Key(o.db, h.key)
	tail := fmt.Appendf(nil, "+%d", o.seq)
	o.seq++
	was := h.fate(h.last())
	var now int64
	next := was
	s := o.issued(h, fate{}, func() store.Status {
		return o.ss.RMW(&k, func(old *store.View, exists bool) (store.Write, bool) {
			next = fate{value: append([]byte{}, tail...)}
			if exists {
				next = fate{append(append([]byte{}, old.Value...), tail...), old.ExpireAt}
			}
			h.mu.Lock()
			h.fates[len(h.fates)-1] = next
			h.mu.Unlock()
			now = o.w.clock.Load()
			return store.Write{Value: next.value, ExpireAt: next.expire}, true
		})
	})
	if s != store.OK {
		o.w.t.Errorf("modify %s: %v %v", h.key, s, o.ss.Err())
	}
	if before := was.at(now); before == nil && was.expire == 0 && len(next.value) != len(tail) {
		o.w.t.Errorf("modify %s saw %s of an absent key", h.key, brief(next.value))
	}
}

// transact changes several keys at once.
func (o *owner) transact() {
	var hs []*history
	for _, n := range o.rng.Perm(len(o.keys))[:2+o.rng.IntN(3)] {
		hs = append(hs, o.keys[n])
	}
	large := o.rng.IntN(20) == 0
	fates := make([]fate, len(hs))
	marks := make([]mark, len(hs))
	for i, h := range hs {
		if o.rng.IntN(3) > 0 {
			n := o.rng.IntN(100)
			if large {
				n += o.w.opts.SegmentBytes / 16
			}
			fates[i].value = o.value(h, n)
		}
		marks[i] = mark{h, h.issue(fates[i])}
	}
	s := o.run(func() store.Status { return o.commit(hs, fates) })
	if s != store.OK {
		for _, h := range hs {
			h.withdraw()
		}
		o.w.t.Errorf("transaction: %v %v", s, o.ss.Err())
		return
	}
	o.done = append(o.done, marks...)
}

func (o *owner) commit(hs []*history, fates []fate) store.Status {
	keys := make([]store.Key, len(hs))
	for i, h := range hs {
		keys[i] = o.ss.Key(o.db, h.key)
	}
	if s := o.ss.Lock(keys); s != store.OK {
		return s
	}
	for i := range keys {
		var s store.Status
		if fates[i].value == nil {
			s = o.ss.Delete(&keys[i], nil)
		} else {
			s = o.ss.Put(&keys[i], store.Write{Value: fates[i].value}, nil)
		}
		if s != store.OK && s != store.NotFound {
			o.ss.Abort()
			return s
		}
	}
	return o.ss.Commit()
}

// truncate empties the owner's database.
func (o *owner) truncate() {
	var marks []mark
	for _, h := range o.keys {
		marks = append(marks, mark{h, h.issue(fate{})})
	}
	if err := o.w.st.Truncate(o.db); err != nil {
		o.w.t.Errorf("truncate: %v", err)
		return
	}
	// Truncation is durable by itself, whatever came before it.
	for _, m := range marks {
		raise(&m.of.acked, int64(m.fate))
		raise(&m.of.synced, int64(m.fate))
	}
}
