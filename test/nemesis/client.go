package nemesis

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/ostrodb/ostro/test/harness"
	"github.com/ostrodb/ostro/test/linearize"
	"github.com/ostrodb/ostro/wire/resp"
)

// client does random operations on objects and records them.
type client struct {
	*Router
	rng      *rand.Rand
	recorder *linearize.Recorder
	pool     *pool
	id       int
	values   int // written so far: each is new
}

// run works until it is told to stop.
func (c *client) run(stop <-chan struct{}) {
	defer c.Close()
	for c.Odd == "" {
		select {
		case <-stop:
			return
		default:
		}
		k, o := c.pool.pick(c.rng, kinds)
		c.step(k, o)
		time.Sleep(time.Duration(c.rng.IntN(3000)) * time.Microsecond) // Servers need the cores more.
	}
}

func (c *client) step(k kind, o *object) {
	switch k {
	case register:
		c.stepRegister(o)
	case counter:
		c.either(o, func() { c.add(o) })
	case growing:
		c.either(o, func() { c.append(o) })
	case bank:
		if c.rng.IntN(3) == 0 {
			c.balances(o)
		} else {
			c.transfer(o)
		}
	}
}

func (c *client) either(o *object, write func()) {
	if c.rng.IntN(3) == 0 {
		c.get(o)
	} else {
		write()
	}
}

func (c *client) stepRegister(o *object) {
	switch c.rng.IntN(8) {
	case 0, 1, 2:
		c.get(o)
	case 3, 4:
		c.set(o)
	case 5:
		c.swap(o)
	case 6:
		c.compareAndSet(o)
	case 7:
		c.remove(o)
	}
}

// value is one that was never written before.
func (c *client) value() string {
	c.values++
	return fmt.Sprintf("%d.%d", c.id, c.values)
}

// operate records one operation around the commands that make it. The answer is made of the
// last command's reply.
func (c *client) operate(o *object, op linearize.Op, answer func(resp.Value) (string, bool), commands ...[]string) Fate {
	op.Object = o.name
	c.recorder.Call(op)
	replies, fate := c.Do(o.key(0), commands...)
	c.conclude(o, fate, func() (string, bool) { return answer(replies[len(replies)-1]) })
	return fate
}

func (c *client) conclude(o *object, fate Fate, answer func() (string, bool)) {
	switch fate {
	case Answered:
		c.recorder.Answered(answer())
	case Refused:
		c.recorder.Refused()
	case Lost:
		c.recorder.Lost()
		c.pool.lost(o)
	}
}

// text is a value that was found, or none.
func text(v resp.Value) (string, bool) {
	if v.IsNull() {
		return "", false
	}
	return harness.Text(v), true
}

func (c *client) get(o *object) Fate {
	return c.operate(o, linearize.Op{Act: linearize.Get}, text, []string{"GET", o.key(0)})
}

func (c *client) set(o *object) {
	v := c.value()
	c.operate(o, linearize.Op{Act: linearize.Set, Put: v}, text, []string{"SET", o.key(0), v})
}

func (c *client) swap(o *object) {
	v := c.value()
	c.operate(o, linearize.Op{Act: linearize.Swap, Put: v}, text, []string{"SET", o.key(0), v, "GET"})
}

func (c *client) remove(o *object) {
	c.operate(o, linearize.Op{Act: linearize.Delete}, func(v resp.Value) (string, bool) {
		return "", harness.Text(v) == "1"
	}, []string{"DEL", o.key(0)})
}

func (c *client) add(o *object) {
	by := int64(1 + c.rng.IntN(9))
	c.operate(o, linearize.Op{Act: linearize.Add, Amount: by}, text, []string{"INCRBY", o.key(0), strconv.FormatInt(by, 10)})
}

func (c *client) append(o *object) {
	v := c.value() + ";"
	c.operate(o, linearize.Op{Act: linearize.Append, Put: v}, text, []string{"APPEND", o.key(0), v})
}

// compareAndSet reads under WATCH and writes in a transaction, which fails if another
// was faster.
func (c *client) compareAndSet(o *object) {
	op := linearize.Op{Object: o.name, Act: linearize.Get}
	c.recorder.Call(op)
	replies, fate := c.Try(o.key(0), []string{"WATCH", o.key(0)}, []string{"GET", o.key(0)})
	var saw string
	var found bool
	c.conclude(o, fate, func() (string, bool) {
		saw, found = text(replies[1])
		return saw, found
	})
	if fate != Answered {
		c.Close() // Nothing may stay watched.
		return
	}
	v := c.value()
	c.recorder.Call(linearize.Op{Object: o.name, Act: linearize.CAS, Want: saw, WantNone: !found, Put: v})
	replies, fate = c.Try(o.key(0), []string{"MULTI"}, []string{"SET", o.key(0), v}, []string{"EXEC"})
	if fate == Answered && replies[2].IsNull() {
		fate = Refused
	}
	c.conclude(o, fate, func() (string, bool) { return "", true })
	if fate == Refused {
		c.Close()
	}
}

func (c *client) transfer(o *object) {
	from := c.rng.IntN(accounts)
	to := (from + 1 + c.rng.IntN(accounts-1)) % accounts
	amount := int64(1 + c.rng.IntN(100))
	by := strconv.FormatInt(amount, 10)
	c.operate(o, linearize.Op{Act: linearize.Transfer, From: from, To: to, Amount: amount}, numbers,
		[]string{"MULTI"}, []string{"DECRBY", o.key(from), by}, []string{"INCRBY", o.key(to), by}, []string{"EXEC"})
}

func (c *client) balances(o *object) Fate {
	command := []string{"MGET"}
	for n := range accounts {
		command = append(command, o.key(n))
	}
	return c.operate(o, linearize.Op{Act: linearize.Balances}, numbers, command)
}

// numbers are an array's, with 0 for what is not there.
func numbers(v resp.Value) (string, bool) {
	all := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		all[i] = "0"
		if !e.IsNull() {
			all[i] = harness.Text(e)
		}
	}
	return strings.Join(all, " "), true
}
