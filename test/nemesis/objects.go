package nemesis

import (
	"fmt"
	"math/rand/v2"
	"sync"
)

// kind is a sort of object, by the first letter of its name.
type kind byte

const (
	register kind = 'r'
	counter  kind = 'c'
	growing  kind = 'g'
	bank     kind = 'b'
)

var kinds = []kind{register, counter, growing, bank}

// accounts is how many a bank has.
const accounts = 4

// Histories stay short enough to be checked in no time: an object is retired after so many operations,
// or so many without an answer, and a new one takes its place.
const (
	mostOps  = 120
	mostLost = 6
)

// object is a key, or keys of one slot, that clients contend for.
type object struct {
	name      string
	ops, lost int
}

// key names one of its keys. All lie in one slot.
func (o *object) key(n int) string { return fmt.Sprintf("{%s}:%d", o.name, n) }

// pool is the objects in use.
type pool struct {
	mu      sync.Mutex
	run     string // keeps names of several pools apart
	current map[kind][]*object
	all     []*object
}

// newPool has a few objects of each kind.
func newPool(run string, width int) *pool {
	p := &pool{run: run, current: map[kind][]*object{}}
	for _, k := range kinds {
		for range width {
			p.current[k] = append(p.current[k], p.fresh(k))
		}
	}
	return p
}

func (p *pool) fresh(k kind) *object {
	o := &object{name: fmt.Sprintf("%c%s.%d", k, p.run, len(p.all))}
	p.all = append(p.all, o)
	return o
}

// pick returns an object of some kinds for one more operation.
func (p *pool) pick(rng *rand.Rand, of []kind) (kind, *object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := of[rng.IntN(len(of))]
	list := p.current[k]
	i := rng.IntN(len(list))
	if list[i].ops >= mostOps || list[i].lost >= mostLost {
		list[i] = p.fresh(k)
	}
	list[i].ops++
	return k, list[i]
}

func (p *pool) lost(o *object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o.lost++
}
