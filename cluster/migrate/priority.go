package migrate

import (
	"context"
	"slices"
	"sync"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// maxKeys is how many keys one priority pull asks for. Half of them are for new ones: of those that were left behind because they are large
// there may be many.
const maxKeys = store.MaxPullKeys

// priority is the keys that operations wait for. They are asked for in batches: one is under way,
// and the next gathers meanwhile. A key that is asked for already is not asked for
// again, unless the answer had no room for it; who wants it then waits with the others.
type priority struct {
	mu     sync.Mutex
	wishes map[name]*wish
	left   []*wish // that were asked for, and did not come or not as a whole; oldest first
	next   []*wish // that nobody has asked for yet, oldest first
	apart  []*wish // that the source could not read
	aside  bool    // somebody asks for those
	ended  bool
	wake   chan struct{} // holds one token
	bell   bell          // rung besides, for who listens before it waits for that
}

type name struct {
	table record.TableID
	key   string
}

type wish struct {
	key  store.ArrivingKey
	done []func(error)

	// Of who asks, alone.
	asked bool
	here  bool             // it has come, or is known not to be
	at    store.PullCursor // where its value goes on, if some of it has come
	known bool             // there was word of it, and at is of that
	apart bool             // the source could not read it: it is asked for alone, and apart from all others
}

// begin returns the wish, to be asked for by the word that there is of it, or without.
func (w *wish) begin(known bool) *wish {
	if w.known != known {
		w.known, w.at = known, store.PullCursor{}
	}
	return w
}

func newPriority() *priority {
	return &priority{wishes: map[name]*wish{}, wake: make(chan struct{}, 1)}
}

// want asks for a key. done is called once, when the key has come or is known not to be, or when nobody
// asks any more.
func (p *priority) want(k store.ArrivingKey, done func(error)) {
	p.note(k, done)
	p.call()
}

// note is want for one of several: call follows the last of them, so that they are asked for together.
func (p *priority) note(k store.ArrivingKey, done func(error)) {
	if !p.add(k, done) {
		done(nil)
	}
}

// add puts a key on the list; false if nobody asks any more.
func (p *priority) add(k store.ArrivingKey, done func(error)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	n := name{k.Table, string(k.Bytes)}
	w := p.wishes[n]
	if w == nil {
		w = &wish{key: k}
		p.wishes[n] = w
		p.next = append(p.next, w)
	}
	w.done = append(w.done, done)
	return true
}

// call wakes who takes.
func (p *priority) call() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
	p.bell.ring()
}

// take waits for keys and takes the next batch of them. None: ctx has ended.
func (p *priority) take(ctx context.Context) []*wish {
	for {
		if batch := p.batch(); len(batch) > 0 {
			return batch
		}
		if p.bell.listen(func() bool { return p.some() || ctx.Err() != nil }) {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		}
	}
}

// some tells whether there is something to ask for.
func (p *priority) some() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.left)+len(p.next) > 0
}

// gathers tells whether the next batch may wait for more: nothing was left behind, and there is room.
func (p *priority) gathers() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.left) == 0 && len(p.next) < maxKeys
}

// batch takes what was left behind, oldest first, and what is new.
func (p *priority) batch() []*wish {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := min(len(p.left), maxKeys-min(len(p.next), maxKeys/2))
	fresh := min(len(p.next), maxKeys-left)
	batch := slices.Concat(p.left[:left], p.next[:fresh])
	p.left, p.next = p.left[left:], p.next[fresh:]
	return batch
}

// putBack has those of a batch that did not come be asked for again, in their order; and what the source could not read apart from all
// others, which do not wait for that. It tells whether somebody must begin with those.
func (p *priority) putBack(batch []*wish) (begin bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	if left := parted(batch, func(i int) bool { return !batch[i].here && !batch[i].apart }); len(left) > 0 {
		p.left = append(left, p.left...)
	}
	p.apart = append(p.apart, parted(batch, func(i int) bool { return !batch[i].here && batch[i].apart })...)
	begin = len(p.apart) > 0 && !p.aside
	p.aside = p.aside || begin
	return begin
}

// takeApart takes what is asked for apart. None: who does so is to end.
func (p *priority) takeApart() (batch []*wish) {
	p.mu.Lock()
	defer p.mu.Unlock()
	batch, p.apart = p.apart, nil
	p.aside = len(batch) > 0
	return batch
}

// putApart has those that did not come be asked for apart again.
func (p *priority) putApart(batch []*wish) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.apart = append(parted(batch, func(i int) bool { return !batch[i].here }), p.apart...)
	}
}

// granted tells those who wait that their keys have come.
func (p *priority) granted(batch []*wish) {
	for _, w := range batch {
		w.here = true
		for _, f := range p.forget(w) {
			f(nil)
		}
	}
}

// forget takes a wish off the list, and gives who waits for it.
func (p *priority) forget(w *wish) (done []func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := name{w.key.Table, string(w.key.Bytes)}
	if p.wishes[n] == w {
		delete(p.wishes, n)
	}
	done, w.done = w.done, nil
	return done
}

// waiting is how many keys are waited for.
func (p *priority) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.wishes)
}

// end lets all go on that wait, and those that would.
func (p *priority) end() {
	p.mu.Lock()
	p.ended = true
	var left []*wish
	for _, w := range p.wishes {
		left = append(left, w)
	}
	p.left, p.next, p.apart = nil, nil, nil
	p.mu.Unlock()
	for _, w := range left {
		for _, f := range p.forget(w) {
			f(nil)
		}
	}
}
