package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	native "github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/test/linearize"
	"github.com/ostrodb/ostro/wire"
)

// contender does random operations on the objects of those who speak RESP, through the native protocol, and records them in the same
// history: through whichever door they came, all have one order. Its client repeats by itself what was not answered, so hardly anything is lost.
type contender struct {
	c        *native.Client
	rng      *rand.Rand
	recorder *linearize.Recorder
	pool     *pool
	id       int
	values   int // written so far: each is new
	done     atomic.Int64
	heard    atomic.Pointer[string] // the first answer that no client should see
}

// contested are kinds of which both doors have the same idea. Counters and banks are text to the one, and eight bytes to the other.
var contested = []kind{register, growing}

// Contend has so many clients of the native protocol work, too, until Stop. They share c, which lives longer than that.
func (l *Load) Contend(c *native.Client, clients int) {
	for range clients {
		n := len(l.contenders)
		one := &contender{c: c, rng: l.rng(3000 + n), recorder: l.history.Client(), pool: l.pool, id: 3000 + n}
		l.contenders = append(l.contenders, one)
		l.all.Go(func() { one.run(l.stop) })
	}
}

// run works until it is told to stop.
func (c *contender) run(stop <-chan struct{}) {
	for c.heard.Load() == nil {
		select {
		case <-stop:
			return
		default:
		}
		k, o := c.pool.pick(c.rng, contested)
		c.step(k, o)
		time.Sleep(time.Duration(c.rng.IntN(3000)) * time.Microsecond) // Servers need the cores more.
	}
}

func (c *contender) step(k kind, o *object) {
	key := []byte(o.key(0))
	get := func() { c.operate(o, linearize.Op{Act: linearize.Get}, native.Get(0, key)) }
	c.values++
	value := fmt.Sprintf("%d.%d", c.id, c.values)
	if k == growing {
		if c.rng.IntN(3) == 0 {
			get()
			return
		}
		value += ";"
		c.operate(o, linearize.Op{Act: linearize.Append, Put: value}, native.Append(0, key, []byte(value)))
		return
	}
	switch c.rng.IntN(8) {
	case 0, 1, 2:
		get()
	case 3, 4:
		c.operate(o, linearize.Op{Act: linearize.Set, Put: value}, native.Put(0, key, []byte(value)))
	case 5:
		c.operate(o, linearize.Op{Act: linearize.CAS, WantNone: true, Put: value}, native.Insert(0, key, []byte(value)))
	case 6:
		c.compareAndSet(o, key, value)
	case 7:
		c.operate(o, linearize.Op{Act: linearize.Delete}, native.Delete(0, key))
	}
}

// compareAndSet sets an object if it is what was read.
func (c *contender) compareAndSet(o *object, key []byte, value string) {
	saw, found := c.operate(o, linearize.Op{Act: linearize.Get}, native.Get(0, key))
	if found {
		c.operate(o, linearize.Op{Act: linearize.CAS, Want: saw, Put: value}, native.Swap(0, key, []byte(saw), []byte(value)))
	}
}

// operate records one operation, and returns what was answered and whether anything was there.
func (c *contender) operate(o *object, op linearize.Op, send native.Op) (got string, found bool) {
	op.Object = o.name
	c.recorder.Call(op)
	r, err := c.c.Do(context.Background(), send) // The client has an end to its patience.
	got, found = string(r.Value), true
	if op.Act == linearize.Append {
		got = strconv.FormatInt(r.Int(), 10)
	}
	switch fate, there := c.fate(op, err); {
	case fate == Answered && there:
		c.done.Add(1)
		c.recorder.Answered(got, true)
		return got, true
	case fate == Answered:
		c.done.Add(1)
		c.recorder.Answered("", false)
	case fate == Refused:
		c.recorder.Refused()
	default:
		c.recorder.Lost()
		c.pool.lost(o)
	}
	return "", false
}

// fate is what became of an operation, and whether there was something.
func (c *contender) fate(op linearize.Op, err error) (f Fate, there bool) {
	said := new(native.ServerError)
	switch {
	case err == nil:
		return Answered, true
	case errors.Is(err, native.ErrNotFound):
		return Answered, false
	case errors.Is(err, native.ErrUnavailable), op.Act == linearize.CAS && errors.Is(err, native.ErrConflict):
		return Refused, false
	case errors.As(err, &said) && said.Status == wire.Refused: // as on a full disk
		return Refused, false
	case errors.Is(err, native.ErrUnknownOutcome), errors.As(err, &said) && said.Status == wire.Failed:
		return Lost, false
	}
	odd := fmt.Sprintf("a native client's %s: %v", op, err)
	c.heard.Store(&odd)
	return Lost, false
}
