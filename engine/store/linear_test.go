package store_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ostrodb/ostro/engine/store"
)

// call is one operation on one key, and what came of it.
type call struct {
	key  int
	op   string
	with string // what was to be written
	saw  string // what a conditional write had seen
	cond bool   // it had seen something
}

type outcome struct {
	value string
	found bool
	none  bool // a conflict: nothing was done
}

// register is the model of one key: absent, or a value.
type register struct {
	value string
	there bool
}

func registers() porcupine.Model {
	return porcupine.Model{
		Partition: func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
			byKey := map[int][]porcupine.Operation{}
			for _, o := range all {
				byKey[o.Input.(call).key] = append(byKey[o.Input.(call).key], o)
			}
			for _, p := range byKey {
				parts = append(parts, p)
			}
			return parts
		},
		Init:              func() any { return register{} },
		Step:              func(state, in, out any) (bool, any) { return stepRegister(state.(register), in.(call), out.(outcome)) },
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
	}
}

func stepRegister(r register, c call, o outcome) (bool, any) {
	if o.none {
		return true, r
	}
	switch c.op {
	case "get":
		return o.found == r.there && o.value == r.value, r
	case "put":
		return true, register{c.with, true}
	case "delete":
		return o.found == r.there, register{}
	case "swap":
		return r.there == c.cond && r.value == c.saw, register{c.with, true}
	case "append":
		return o.value == r.value+c.with, register{o.value, true}
	}
	return false, r
}

// history runs random operations of several sessions and notes when each began
// and ended.
func historyOf(t *testing.T, st *store.Store, seed uint64, each int) []porcupine.Operation {
	var mu sync.Mutex
	var all []porcupine.Operation
	began := time.Now()
	crowd(t, st, 4, func(ss *store.Session, n int) {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		for i := range each {
			c := call{key: rng.IntN(3), op: []string{"get", "get", "put", "delete", "swap", "append"}[rng.IntN(6)], with: fmt.Sprintf("%d.%d;", n, i)}
			if c.op == "put" && rng.IntN(8) == 0 {
				c.with += string(pattern(uint64(i), 300)) // A large one.
			}
			from := time.Since(began).Nanoseconds()
			o := execute(t, ss, &c)
			to := time.Since(began).Nanoseconds()
			mu.Lock()
			all = append(all, porcupine.Operation{ClientId: n, Input: c, Call: from, Output: o, Return: to})
			mu.Unlock()
		}
	})
	return all
}

// execute runs one operation.
func execute(t *testing.T, ss *store.Session, c *call) (o outcome) {
	k := ss.Key(0, fmt.Appendf(nil, "register:%d", c.key))
	s := attempt(ss, func() store.Status {
		o = outcome{}
		switch c.op {
		case "get":
			v, s := ss.Get(&k)
			o = outcome{value: string(v.Value), found: s == store.OK}
			return s
		case "put":
			return ss.Put(&k, store.Write{Value: []byte(c.with)}, nil)
		case "delete":
			s := ss.Delete(&k, nil)
			o.found = s == store.OK
			return s
		case "swap":
			v, s := ss.Get(&k)
			if s == store.Cold {
				return s
			}
			c.saw, c.cond = string(v.Value), s == store.OK
			return ss.Put(&k, store.Write{Value: []byte(c.with)}, &v)
		default:
			return ss.RMW(&k, func(old *store.View, _ bool) (store.Write, bool) {
				o.value = string(old.Value) + c.with
				return store.Write{Value: []byte(o.value)}, true
			})
		}
	})
	switch s {
	case store.OK, store.NotFound:
	case store.Conflict:
		o.none = true
	default:
		t.Errorf("%s: %v %v", c.op, s, ss.Err())
	}
	return o
}

func TestHistoriesOfSingleKeysAreLinearizable(t *testing.T) {
	t.Parallel()
	forHammerConfigs(t, func(t *testing.T, st *store.Store) {
		seed := seedOf(t)
		for round := range uint64(scale(60)) {
			all := historyOf(t, st, seed+round, 60)
			if got := porcupine.CheckOperationsTimeout(registers(), all, 20*time.Second); got == porcupine.Illegal {
				t.Fatalf("round %d: no order of these operations explains them:\n%s", round, describe(all))
			}
			ss := session(t, st) // The next round begins with nothing.
			for n := range 3 {
				k := ss.Key(0, fmt.Appendf(nil, "register:%d", n))
				attempt(ss, func() store.Status { return ss.Delete(&k, nil) })
			}
		}
	})
}

func describe(all []porcupine.Operation) (s string) {
	for _, o := range all {
		c, out := o.Input.(call), o.Output.(outcome)
		s += fmt.Sprintf("%d %8d-%8d key %d %s %s saw %s -> %s found=%v none=%v\n", o.ClientId, o.Call, o.Return, c.key, c.op,
			brief([]byte(c.with)), brief([]byte(c.saw)), brief([]byte(out.value)), out.found, out.none)
	}
	return s
}
