package store

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

// clients remember, per client, which of its operations this process has run and
// which of them are answered. The results of those go at once: clients have few
// unanswered operations, and three minutes of results would be many.
//
// An attempt that is late, still in some buffer when another one was answered, must
// not find that its result is gone and run. So it is refused, by its sequence:
// who forgets a result raises answered first, and who runs an operation looks at
// answered last, when it holds the lock on the result's entry.
type clients struct {
	byID    sync.Map // of *client, by the client's id
	foreign foreign  // results that this process did not write
}

// client is what is known of one.
type client struct {
	payer    *Payer        // nil: nobody
	answered atomic.Uint64 // all operations with lower sequences are
	until    atomic.Int64  // Unix milliseconds; it may be forgotten then

	mu   sync.Mutex
	run  []receipt // as they were run
	gone bool      // it was forgotten: who comes with news finds another
}

// receipt is an operation whose result is kept.
type receipt struct {
	seq   uint64
	place record.Place // of the object
	until int64        // when the result goes by itself
	bytes uint32       // that the result takes in the log
}

// Payer is charged for what is kept of its clients' operations: the results in the log, and who ran them. A restart
// forgets the charge, and so does a move to another node; there results go by time.
type Payer struct{ bytes atomic.Int64 }

// What a client and a receipt take of the heap, about.
const (
	clientBytes  = 256
	receiptBytes = 32
)

// Bytes is what is kept for the payer.
func (p *Payer) Bytes() int64 { return p.bytes.Load() }

// pay charges for a client and for receipts, or gives that back.
func (p *Payer) pay(n int64) {
	if p != nil && n != 0 {
		p.bytes.Add(n)
	}
}

// worthOfReceipts is what receipts, and the results that they are of, are charged.
func worthOfReceipts(all []receipt) (n int64) {
	for i := range all {
		n += receiptBytes + int64(all[i].bytes)
	}
	return n
}

var errAnswered = errors.New("the operation was answered before, and its client knows: it is not run again")

// of finds a client. Who is not known yet is the payer's.
func (cs *clients) of(id uint64, payer *Payer) *client {
	if c, ok := cs.byID.Load(id); ok {
		return c.(*client)
	}
	c, known := cs.byID.LoadOrStore(id, &client{payer: payer})
	if !known {
		payer.pay(clientBytes)
	}
	return c.(*client)
}

// heard gives a client that is remembered until some time, with its lock held.
func (cs *clients) heard(id uint64, until int64, payer *Payer) *client {
	for {
		c := cs.of(id, payer)
		c.mu.Lock()
		if !c.gone {
			c.until.Store(max(until, c.until.Load()))
			return c
		}
		c.mu.Unlock()
	}
}

// isAnswered tells whether an operation is not to be run any more.
func (cs *clients) isAnswered(id OpID) bool {
	c, ok := cs.byID.Load(id.Client)
	return ok && id.Seq < c.(*client).answered.Load()
}

// note notes that the result of an operation is kept until some time.
func (cs *clients) note(id OpID, r receipt, now int64, payer *Payer) {
	c := cs.heard(id.Client, r.until, payer)
	defer c.mu.Unlock()
	c.expire(now)
	c.run = append(c.run, r)
	c.payer.pay(receiptBytes + int64(r.bytes))
}

// expire drops receipts of results that went by time: of a client that never tells what arrived. The caller holds
// the lock.
func (c *client) expire(now int64) {
	over := 0
	for over < len(c.run) && c.run[over].until <= now {
		over++
	}
	c.payer.pay(-worthOfReceipts(c.run[:over]))
	c.run = c.run[over:]
}

// take takes the receipts below a sequence, as far as they are the oldest.
func (c *client) take(below uint64) []receipt {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(c.run) && c.run[n].seq < below {
		n++
	}
	taken := c.run[:n:n]
	c.run = c.run[n:]
	c.payer.pay(-worthOfReceipts(taken))
	return taken
}

// keptResult is an operation whose result may be there.
type keptResult struct {
	id    OpID
	place record.Place
}

// kept gives the operations on keys in some ranges whose receipts are there.
func (cs *clients) kept(ranges []Range, now int64) (all []keptResult) {
	cs.byID.Range(func(id, one any) bool {
		c := one.(*client)
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, r := range c.run {
			if r.until > now && anyHas(ranges, r.place) {
				all = append(all, keptResult{OpID{id.(uint64), r.seq}, r.place})
			}
		}
		return true
	})
	return all
}

// sweep forgets clients that were not heard of for long, and results of others whose time is over. One that is heard of right now stays, or is another one: its
// next owner must be told what it has run.
func (cs *clients) sweep(now int64) {
	cs.foreign.sweep(now)
	cs.byID.Range(func(id, one any) bool {
		c := one.(*client)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.expire(now)
		if c.gone = c.until.Load() <= now; c.gone && cs.byID.CompareAndDelete(id, one) {
			c.payer.pay(-clientBytes - worthOfReceipts(c.run))
			c.run = nil
		}
		return true
	})
}

// PaidBy says who is charged for what is kept of operations from now on; nil: nobody.
func (ss *Session) PaidBy(p *Payer) { ss.payer = p }

// Heard tells whether something is kept of a client.
func (ss *Session) Heard(id uint64) bool {
	_, ok := ss.st.clients.byID.Load(id)
	return ok
}

// Answered says that a client has the answers of all its operations with sequences
// below some: their results are forgotten, and further attempts are refused. Until the
// time that it returns, in Unix milliseconds, that is remembered: to say it again, or of
// fewer, has no effect.
func (ss *Session) Answered(id, below uint64) (until int64) {
	kept := ss.st.opts.KeepResults.Milliseconds()
	until = ss.now + kept/2 // A client that runs something is known for kept from then on; rounds' clocks are not quite the same.
	if below == 0 {
		return until
	}
	if c, ok := ss.st.clients.byID.Load(id); ok && below <= c.(*client).answered.Load() {
		return min(until, c.(*client).until.Load())
	}
	c := ss.st.clients.heard(id, ss.now+2*kept, ss.payer)
	c.mu.Unlock()
	for was := c.answered.Load(); was < below && !c.answered.CompareAndSwap(was, below); was = c.answered.Load() {
	}
	cold := len(ss.cold)
	for _, r := range c.take(below) {
		ss.Forget(r.place, OpID{id, r.seq}) // A cold one goes by time.
	}
	ss.cold = ss.cold[:cold]
	return until
}
