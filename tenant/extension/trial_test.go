package extension_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
)

// coldStore cannot answer at once for one key.
type coldStore struct {
	*local.Store
	cold string
}

func (s coldStore) Get(table uint32, key, buf []byte, v *extension.Value) extension.Status {
	if string(key) == s.cold {
		return extension.Later
	}
	return s.Store.Get(table, key, buf, v)
}

func trial(fn, key string, s extension.Store, args ...string) *extension.Invocation {
	inv := &extension.Invocation{Function: fn, Keys: [][]byte{[]byte(key)}, Store: s, Trial: true, Fuel: 20_000}
	for _, a := range args {
		inv.Args = append(inv.Args, []byte(a))
	}
	return inv
}

// attempt is a call on a pool that has an instance.
func attempt(tb testing.TB, p *extension.Pool, inv *extension.Invocation) (extension.Result, error) {
	tb.Helper()
	if err := p.Warm(1); err != nil {
		tb.Fatal(err)
	}
	return p.Call(inv)
}

func TestATrialThatIsLongerThanItsFuelIsAbandonedAndLeavesNothing(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	s := local.New(nil)
	for range 5 {
		call(t, p, s, "state", "k")
		if _, err := attempt(t, p, trial("transfer", "k", s, "loop")); err != extension.ErrAbandoned {
			t.Fatalf("%v", err)
		}
		if got := call(t, p, s, "state", "k"); got != u32(1) {
			t.Fatalf("memory is not as it was at the beginning: %q", got)
		}
		if got := valueOf(s, "a"); got != "(absent)" {
			t.Fatalf("it left %q", got)
		}
	}
	m := p.Metrics()
	if m.Abandoned != 5 || m.Made > 2 || m.Reset < 4 {
		t.Fatalf("%+v: the second instance, and it alone, should serve all but the first", m)
	}
}

// To make an instance takes a tenth of a millisecond and more, which a tenant that traps all the time had others wait for.
func TestAnInstanceWhoseCallWasEndedBeginsAnew(t *testing.T) {
	s := local.New(nil)
	for _, c := range []struct {
		module, fn, how string
		kind            extension.Kind
	}{
		{"work", "transfer", "trap", extension.Trapped},
		{"work", "transfer", "fail", extension.Failed},
		{"work", "transfer", "loop", extension.OutOfFuel},
		{"hostile", "wildpointer", "", extension.Misused},
		{"hostile", "giantresponse", "", extension.OverLimit},
	} {
		p := newPool(t, c.module, extension.PoolOptions{})
		const calls = 20
		for range calls {
			if c.module == "work" {
				if got := call(t, p, s, "state", "k"); got != u32(1) {
					t.Fatalf("%s: memory is not as it was at the beginning: %q", c.how, got)
				}
			}
			_, err := p.Call(&extension.Invocation{Function: c.fn, Keys: [][]byte{{'k'}}, Args: [][]byte{[]byte(c.how)}, Store: s, Fuel: 32 << 20})
			wantKind(t, err, c.kind)
			if got := valueOf(s, "a"); got != "(absent)" {
				t.Fatalf("%s left %q", c.how, got)
			}
		}
		if m := p.Metrics(); m.Made > 2 || m.Reset < calls-2 {
			t.Errorf("%s %s: %+v; the second instance should serve all but the first", c.fn, c.how, m)
		}
	}
}

func TestATrialThatEndsInTimeIsACallLikeAnyOther(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	s := storeOf(t, "k=v")
	res, err := attempt(t, p, trial("get", "k", s))
	if err != nil || string(res.Response) != "v" {
		t.Fatalf("%q, %v", res.Response, err)
	}
	if _, err := attempt(t, p, trial("transfer", "k", s, "x")); err != nil || valueOf(s, "a") != "1" {
		t.Fatalf("%v, %q", err, valueOf(s, "a"))
	}
}

func TestAStoreThatWouldWaitEndsATrial(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	s := coldStore{storeOf(t, "k=v", "list=key00001key00002", "key00001=12345678"), "key00002"}
	if _, err := attempt(t, p, trial("get", "key00002", s)); err != extension.ErrAbandoned {
		t.Fatalf("%v", err)
	}
	if _, err := attempt(t, p, trial("aggregate", "list", s)); err != extension.ErrAbandoned {
		t.Fatalf("%v", err)
	}
	if _, err := attempt(t, p, trial("multiget", "k", s, "key00002")); err != extension.ErrAbandoned {
		t.Fatalf("%v", err)
	}
	whole := trial("get", "key00002", s)
	whole.Trial = false
	_, err := p.Call(whole)
	wantKind(t, err, extension.Broken)
}

func TestLinesOfATrialAreToldWhenItHasEndedAndNeverOfOneThatWasAbandoned(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	var got []string
	inv := trial("clock", "k", local.New(nil))
	inv.Log = func(level int, line []byte) { got = append(got, string(line)) }
	if _, err := attempt(t, p, inv); err != nil || !slices.Equal(got, []string{"hello"}) {
		t.Fatalf("%q, %v", got, err)
	}
	got = nil
	inv = trial("logflood", "k", local.New(nil))
	inv.Log = func(level int, line []byte) { got = append(got, string(line)) }
	if _, err := attempt(t, newPool(t, "hostile", extension.PoolOptions{}), inv); err != extension.ErrAbandoned || got != nil {
		t.Fatalf("%d lines, %v", len(got), err)
	}
}

func TestWorkersKeepTheirInstancesAndStealIdleOnes(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{Instances: 1})
	s := local.New(nil)
	for worker := range 8 {
		inv := &extension.Invocation{Function: "state", Keys: [][]byte{{'k'}}, Store: s, Worker: worker}
		for i := range 3 {
			res, err := p.Call(inv)
			if err != nil || string(res.Response) != u32(uint32(3*worker+i+1)) {
				t.Fatalf("worker %d: %q, %v", worker, res.Response, err)
			}
		}
	}
	if m := p.Metrics(); m.Calls != 24 || m.Made != 1 || m.Reused != 23 || m.Idle != 1 {
		t.Fatalf("%+v", m)
	}
}

func TestRestGivesBackMemoryAndStateOfIdleInstances(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{Fresh: true})
	s := local.New(nil)
	call(t, p, s, "state", "k")
	if got := p.Rest(); got != 1 {
		t.Fatalf("%d instances rest", got)
	}
	if got := call(t, p, s, "state", "k"); got != u32(1) {
		t.Fatalf("%q", got)
	}
}

func TestAPoolThatIsClosedWhileItIsCalledLeavesNoInstance(t *testing.T) {
	m := compile(t, "work")
	s := local.New(nil)
	for range 20 {
		p := poolOf(t, m, extension.DefaultLimits(), extension.PoolOptions{})
		var callers sync.WaitGroup
		began := make(chan struct{}, 4)
		for w := range 4 {
			callers.Go(func() {
				inv := &extension.Invocation{Function: "empty", Store: s, Worker: w}
				for i := 0; ; i++ {
					if _, err := p.Call(inv); errors.Is(err, extension.ErrClosed) {
						return
					} else if err != nil {
						t.Error(err)
						return
					}
					if i == 10 {
						began <- struct{}{}
					}
					_ = p.Metrics()
				}
			})
		}
		<-began
		p.Close()
		callers.Wait()
		if m := p.Metrics(); m.Instances != 0 || m.Idle != 0 {
			t.Fatalf("%+v", m)
		}
	}
}
