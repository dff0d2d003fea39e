package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/session"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/tenant/sched"
)

// withFunctions adds to options what functions need, and installs those for tests. It ends with the test.
func withFunctions(t testing.TB, st *store.Store, o session.Options) session.Options {
	t.Helper()
	return withScheduled(t, st, o, sched.Options{Deadline: time.Minute}) // A busy machine may let a call wait.
}

// withScheduled is withFunctions with a scheduler of its own kind.
func withScheduled(t testing.TB, st *store.Store, o session.Options, by sched.Options) session.Options {
	t.Helper()
	book, err := tenant.OpenFile("")
	if err != nil {
		t.Fatal(err)
	}
	if o.Tenants, err = tenant.Open(context.Background(), book, st, slog.New(slog.DiscardHandler), by); err != nil {
		t.Fatal(err)
	}
	files, err := library.OpenFiles("")
	if err != nil {
		t.Fatal(err)
	}
	if o.Functions, err = library.Open(context.Background(), library.Options{Book: files}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		o.Functions.Close()
		o.Tenants.Close()
	})
	code, err := os.ReadFile("../call/testdata/calls.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Functions.Shelf(nil).Install(context.Background(), library.Package{Name: "calls", Code: code}, true); err != nil {
		t.Fatal(err)
	}
	return o
}

// callers is a store, a server with functions, and a client of it.
func callers(t testing.TB, so store.Options, o client.Options) *client.Client {
	t.Helper()
	st := openStore(t, so)
	_, addr := serve(t, st, withFunctions(t, st, session.Options{}))
	return dial(t, "ostro://"+addr, o)
}

func b(s string) []byte { return []byte(s) }

// rounds of work: one ends within a trial, the other does not.
const (
	shortWork = "1"
	longWork  = "50000"
)

func TestAFunctionIsInvokedWhereItsKeyIs(t *testing.T) {
	c := callers(t, store.Options{}, client.Options{})
	do := func(op client.Op) (string, error) {
		r, err := c.Do(t.Context(), op)
		return string(r.Value), err
	}
	if _, err := do(client.Put(0, b("a"), b("apple"))); err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		op         client.Op
		want, fail string
	}{
		{op: client.Invoke(0, b("a"), "look"), want: "apple"},
		{op: client.Invoke(1, b("a"), "look"), fail: "function look: returned error code 1"},
		{op: client.Invoke(0, b("b"), "put", b("pear"))},
		{op: client.Get(0, b("b")), want: "pear"},
		{op: client.Invoke(0, b("b"), "put", b("two"), b("2"))},
		{op: client.Get(2, b("b")), want: "two"},
		{op: client.InvokeKeys(0, [][]byte{b("x"), b("y")}, "pay", b(shortWork)), want: "\x00\x00\x00\x00\x00\x00\x00\x00"},
		{op: client.Get(0, b("y")), want: "\x01\x00\x00\x00\x00\x00\x00\x00"},
		{op: client.Invoke(0, b("a"), "none"), fail: "there is no function none"},
		{op: client.Invoke(0, b("z"), "answer", b("4096")), want: strings.Repeat("\x00", 4096)},
		{op: client.Invoke(0, b("z"), "answer", b("4097")), fail: "respond less"},
		{op: client.InvokeKeys(0, [][]byte{b("a"), b("b")}, "mess", b("trap")), fail: "function mess: trapped"},
		{op: client.Get(0, b("a")), want: "apple"},
	} {
		got, err := do(s.op)
		switch {
		case s.fail != "" && (err == nil || !strings.Contains(err.Error(), s.fail)):
			t.Errorf("want an error %q, got %q %v", s.fail, got, err)
		case s.fail == "" && (err != nil || got != s.want):
			t.Errorf("%.40q %v, want %.40q", got, err, s.want)
		}
	}
}

func TestInvocationsOfManyClientsAllCount(t *testing.T) {
	st := openStore(t, store.Options{})
	_, addr := serve(t, st, withFunctions(t, st, session.Options{}))
	const clients, each = 6, 60
	for _, work := range []string{shortWork, longWork} {
		var all sync.WaitGroup
		for range clients {
			c := dial(t, "ostro://"+addr, client.Options{})
			all.Go(func() {
				for range each {
					if _, err := c.Do(context.Background(), client.Invoke(0, b("n"+work), "count", b(work))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		r, err := dial(t, "ostro://"+addr, client.Options{}).Do(t.Context(), client.Get(0, b("n"+work)))
		if got := binary.LittleEndian.Uint64(r.Value); err != nil || got != clients*each {
			t.Errorf("work %s: %d %v, want %d", work, got, err, clients*each)
		}
	}
}

func TestReadsOfAFunctionAreOfOneMoment(t *testing.T) {
	st := openStore(t, store.Options{})
	_, addr := serve(t, st, withFunctions(t, st, session.Options{}))
	payer, reader := dial(t, "ostro://"+addr, client.Options{}), dial(t, "ostro://"+addr, client.Options{})
	keys := [][]byte{b("x"), b("y")}
	stop := make(chan struct{})
	var paying sync.WaitGroup
	paying.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := payer.Do(context.Background(), client.InvokeKeys(0, keys, "pay", b(shortWork))); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 2000 {
		r, err := reader.Do(t.Context(), client.InvokeKeys(0, keys, "total"))
		if err != nil || r.Int() != 0 {
			t.Errorf("%d %v", r.Int(), err)
			break
		}
	}
	close(stop)
	paying.Wait()
}

func TestALongInvocationHoldsUpNoOtherOfItsBatch(t *testing.T) {
	st := openStore(t, store.Options{})
	o := withFunctions(t, st, session.Options{})
	_, addr := serve(t, st, o)
	c := dial(t, "ostro://"+addr, client.Options{})
	long := c.Go(t.Context(), client.Invoke(0, b("a"), "endless"))
	for i := range 50 {
		r, err := c.Do(t.Context(), client.Invoke(0, b("n"), "count", b(shortWork)))
		if err != nil || r.Int() != int64(i+1) {
			t.Fatalf("%d: %d %v", i, r.Int(), err)
		}
	}
	o.Functions.Shelf(nil).Kill()
	if _, err := long.Wait(); err == nil || !strings.Contains(err.Error(), "function endless: ") || errors.Is(err, context.Canceled) {
		t.Errorf("the long one: %v", err)
	}
}
