package migrate

import (
	"context"
	"sync"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// maxKeys is how many keys one priority pull asks for.
const maxKeys = 64

// priority is the keys that operations wait for. They are asked for in batches: one is under way,
// and the next gathers meanwhile. A key that is asked for already is not asked for
// again; who wants it then waits with the others.
type priority struct {
	mu     sync.Mutex
	wishes map[name]*wish
	next   []*wish // that nobody has asked for yet, oldest first
	ended  bool
	wake   chan struct{} // holds one token
}

type name struct {
	table record.TableID
	key   string
}

type wish struct {
	key  store.ArrivingKey
	done []func(error)
}

func newPriority() *priority {
	return &priority{wishes: map[name]*wish{}, wake: make(chan struct{}, 1)}
}

// want asks for a key. done is called once, when the key has come or is known not to be, or when nobody
// asks any more.
func (p *priority) want(k store.ArrivingKey, done func(error)) {
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		done(nil)
		return
	}
	n := name{k.Table, string(k.Bytes)}
	w := p.wishes[n]
	if w == nil {
		w = &wish{key: k}
		p.wishes[n] = w
		p.next = append(p.next, w)
	}
	w.done = append(w.done, done)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// take waits for keys and takes the next batch of them. None: ctx has ended.
func (p *priority) take(ctx context.Context) []*wish {
	for {
		p.mu.Lock()
		n := min(len(p.next), maxKeys)
		batch := p.next[:n:n]
		p.next = p.next[n:]
		p.mu.Unlock()
		if n > 0 {
			return batch
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		}
	}
}

// granted tells those who wait that their keys have come.
func (p *priority) granted(batch []*wish) {
	for _, w := range batch {
		p.mu.Lock()
		delete(p.wishes, name{w.key.Table, string(w.key.Bytes)})
		done := w.done
		p.mu.Unlock()
		for _, f := range done {
			f(nil)
		}
	}
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
	p.next = nil
	p.mu.Unlock()
	p.granted(left)
}
