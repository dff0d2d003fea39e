package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/wire"
)

func key(i int) []byte { return fmt.Append(nil, "key", i) }

func TestAnOperationGoesOutAtOnceWhenNothingIsUnderWay(t *testing.T) {
	f := newFake(t)
	c := f.dial(client.Options{Linger: time.Hour})
	for i := range 5 {
		future := c.Get(t.Context(), 0, key(i))
		b := <-f.batches
		if len(b.ops) != 1 || string(b.ops[0].Key) != string(key(i)) {
			t.Fatalf("%+v", b)
		}
		b.all(t)
		if r, err := future.Wait(); err != nil || string(r.Value) != string(key(i)) {
			t.Fatalf("%q, %v", r.Value, err)
		}
	}
}

func TestOperationsWaitForCompanyWhileBatchesAreUnderWay(t *testing.T) {
	f := newFake(t)
	c := f.dial(client.Options{Linger: time.Hour})
	var futures []*client.Future
	get := func(from, to int) {
		for i := from; i < to; i++ {
			futures = append(futures, c.Get(t.Context(), 0, key(i)))
		}
	}
	get(0, 1)
	first := <-f.batches
	get(1, 2)
	second := <-f.batches
	get(2, 100)
	if len(f.batches) > 0 {
		t.Fatal("a third batch went out without need")
	}
	first.all(t)
	third := <-f.batches
	if len(third.ops) != 98 {
		t.Fatalf("%d operations, want 98", len(third.ops))
	}
	third.all(t)
	second.all(t)
	for i, future := range futures {
		if r, err := future.Wait(); err != nil || string(r.Value) != string(key(i)) {
			t.Fatalf("%d: %q, %v", i, r.Value, err)
		}
	}
}

func TestABatchGoesOutWhenItIsLargeOrOldEnough(t *testing.T) {
	for name, o := range map[string]client.Options{
		"operations": {Linger: time.Hour, BatchOps: 10},
		"bytes":      {Linger: time.Hour, BatchBytes: 200},
		"time":       {Linger: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			c := f.dial(o)
			for i := range 2 { // With these under way, others wait.
				c.Get(t.Context(), 0, key(i))
				<-f.batches
			}
			for i := range 10 {
				c.Get(t.Context(), 0, key(i))
			}
			if b := <-f.batches; len(b.ops) == 0 || len(b.ops) > 10 {
				t.Fatalf("%d operations", len(b.ops))
			}
		})
	}
}

func TestResultsMayComeInAnyOrder(t *testing.T) {
	f := newFake(t)
	c := f.dial(client.Options{})
	c.Get(t.Context(), 0, key(100))
	c.Get(t.Context(), 0, key(101))
	a, b := <-f.batches, <-f.batches
	var futures []*client.Future
	for i := range 10 {
		futures = append(futures, c.Get(t.Context(), 0, key(i)))
	}
	a.all(t)
	b.all(t)
	for answered := 0; answered < 10; {
		batch := <-f.batches
		for i := len(batch.ops) - 1; i >= 0; i-- {
			batch.answer(t, wire.OK, i)
			answered++
		}
	}
	for i, future := range futures {
		if r, err := future.Wait(); err != nil || string(r.Value) != string(key(i)) {
			t.Fatalf("%d: %q, %v", i, r.Value, err)
		}
	}
}

func TestOnlySoMuchIsInFlight(t *testing.T) {
	f := newFake(t)
	c := f.dial(client.Options{MaxInFlight: 2, FailWhenFull: true})
	first, second := c.Get(t.Context(), 0, key(1)), c.Get(t.Context(), 0, key(2))
	if _, err := c.Get(t.Context(), 0, key(3)).Wait(); !errors.Is(err, client.ErrBusy) {
		t.Fatal(err)
	}
	for range 2 {
		(<-f.batches).all(t)
	}
	for _, future := range []*client.Future{first, second} {
		if _, err := future.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	third := c.Get(t.Context(), 0, key(3))
	(<-f.batches).all(t)
	if _, err := third.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestWhoFindsTooMuchInFlightWaitsForRoomOrItsContext(t *testing.T) {
	f := newFake(t)
	c := f.dial(client.Options{MaxInFlight: 1})
	first := c.Get(t.Context(), 0, key(1))
	b := <-f.batches
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.Go(ctx, client.Get(0, key(2))).Wait(); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	busy := make(chan error, 1)
	c.Call(t.Context(), client.Get(0, key(2)), func(_ client.Result, err error) { busy <- err })
	if err := <-busy; !errors.Is(err, client.ErrBusy) {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), client.Get(0, key(3)))
		done <- err
	}()
	b.all(t)
	if _, err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	(<-f.batches).all(t)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestAServerThatHasNoRoomHoldsUpNothingOfOthers(t *testing.T) {
	full, idle := newFake(t), newFake(t)
	half := view.Whole.Last / 2
	full.known = &wire.Map{
		Revision: 1, Nodes: []wire.Node{{ID: "full", View: 1, Address: full.l.Addr().String()}, {ID: "idle", View: 1, Address: idle.l.Addr().String()}},
		Spans: []wire.Span{{Last: half, Node: 0}, {Last: view.Whole.Last, Node: 1}},
	}
	idle.known = full.known
	var here, there []byte
	for i := 0; here == nil || there == nil; i++ {
		if record.PlaceOf(0, key(i)) <= half {
			here = key(i)
		} else {
			there = key(i)
		}
	}
	c := full.dial(client.Options{MaxInFlight: 1})
	c.Get(t.Context(), 0, here)
	<-full.batches // It is not answered.
	const groups = 8
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range groups {
		all.Go(func() { _, _ = c.MultiGet(ctx, 0, [][]byte{here, there}) })
	}
	for left := groups; left > 0; {
		b := <-idle.batches
		left -= len(b.ops)
		b.all(t)
	}
	cancel()
	all.Wait()
}

func TestAllAttemptsOfAWriteHaveOneIdentity(t *testing.T) {
	f := newFake(t)
	c := f.dial(client.Options{})
	future := c.Put(t.Context(), 0, key(1), []byte("v"))
	first := <-f.batches
	_ = first.conn.Close()
	second := <-f.batches
	second.answer(t, wire.Busy, 0)
	third := <-f.batches
	third.send(t, wire.AppendMap(wire.AppendStale(nil, wire.Stale{Number: third.head.Number, View: 2}), f.everything(2)))
	fourth := <-f.batches
	for i, b := range []*fakeBatch{first, second, third, fourth} {
		op := b.ops[0]
		if op.Flags&wire.FlagOnce == 0 || b.head.Client != first.head.Client || op.Sequence != first.ops[0].Sequence {
			t.Errorf("attempt %d: %+v, %+v", i, b.head, op)
		}
	}
	if third.head.View != 1 || fourth.head.View != 2 {
		t.Errorf("views are %d, %d", third.head.View, fourth.head.View)
	}
	fourth.all(t)
	if _, err := future.Wait(); err != nil {
		t.Fatal(err)
	}
	next := c.Put(t.Context(), 0, key(1), []byte("w"))
	b := <-f.batches
	if b.ops[0].Sequence <= first.ops[0].Sequence || b.head.Acked != b.ops[0].Sequence {
		t.Errorf("the next write: %+v, %+v", b.head, b.ops[0])
	}
	b.all(t)
	if _, err := next.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestAServerThatFallsSilentIsGivenUp(t *testing.T) {
	f := newFake(t)
	c := f.dial(client.Options{SessionTimeout: 300 * time.Millisecond})
	future := c.Get(t.Context(), 0, key(1))
	first := <-f.batches
	for first.ops[0].Code == wire.OpPing { // The session is there before the operation is.
		first = <-f.batches
	}
	second := <-f.batches
	for second.conn == first.conn {
		if second.ops[0].Code != wire.OpPing {
			t.Fatalf("the same session was asked for more: %+v", second.ops)
		}
		second = <-f.batches
	}
	second.tryAll()
	for over := false; !over; {
		select {
		case b := <-f.batches: // It may have been too slow for this one, too, whose session is over then.
			b.tryAll()
		case <-future.Done():
			over = true
		}
	}
	if r, err := future.Wait(); err != nil || string(r.Value) != string(key(1)) {
		t.Fatalf("%q, %v", r.Value, err)
	}
}

func TestAServerThatAnswersPingsMayTakeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in a time that goes on only while nobody has anything to do
		f := newPiped(t)
		c := f.dial(client.Options{SessionTimeout: 6 * time.Second, Dial: f.pipe})
		future := c.Get(t.Context(), 0, key(1))
		first := <-f.batches
		for range 10 {
			ping := <-f.batches
			if ping.conn != first.conn || ping.ops[0].Code != wire.OpPing {
				t.Fatalf("no ping: %+v", ping.ops)
			}
			ping.all(t)
		}
		first.all(t)
		if _, err := future.Wait(); err != nil {
			t.Fatal(err)
		}
		if s := c.Stats(); s.Retries > 0 {
			t.Fatalf("%+v", s)
		}
	})
}

func TestAWriteIsNotTriedWhenItsFirstAttemptMayBeForgotten(t *testing.T) {
	f := newFake(t)
	f.welcome.LeaseMillis = 100
	c := f.dial(client.Options{})
	future := c.Put(t.Context(), 0, key(1), []byte("v"))
	for {
		select {
		case b := <-f.batches:
			_ = b.conn.Close()
			continue
		case <-future.Done():
		}
		break
	}
	if _, err := future.Wait(); !errors.Is(err, client.ErrUnknownOutcome) {
		t.Fatal(err)
	}
}

// A process may be stopped, and a machine sleep, at any time: also between the decision to try again and the sending.
func TestAWriteThatMayHaveBeenExecutedIsNotSentOnceItsTimeIsOver(t *testing.T) {
	f := newFake(t)
	var slept atomic.Int64
	var halted atomic.Bool
	woken := make(chan struct{})
	o := client.Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if halted.Load() {
			<-woken
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	o.SetClock(func() time.Duration { return time.Hour + time.Duration(slept.Load()) })
	c := f.dial(o)
	future := c.Put(t.Context(), 0, key(1), []byte("v"))
	first, before := <-f.batches, c.Stats().Retries
	halted.Store(true)
	_ = first.conn.Close()
	await.True(t, "the write is to be sent again", func() bool { return c.Stats().Retries > before })
	slept.Store(int64(2 * time.Minute))
	close(woken)
	if _, err := future.Wait(); !errors.Is(err, client.ErrUnknownOutcome) {
		t.Error(err)
	}
	next := c.Get(t.Context(), 0, key(2))
	b := <-f.batches
	if b.ops[0].Writes() {
		t.Fatalf("it was sent again: %+v", b.ops)
	}
	b.all(t)
	if _, err := next.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestAnOperationThatNobodyExecutesFailsInTime(t *testing.T) {
	f := newFake(t)
	o := client.Options{Retry: 50 * time.Millisecond}
	o.SetClock(func() time.Duration { return time.Hour }) // No answer is late, however slow the machine is.
	c := f.dial(o)
	for _, op := range []client.Op{client.Get(0, key(1)), client.Put(0, key(1), nil)} {
		future := c.Go(t.Context(), op)
		for over := false; !over; {
			select {
			case b := <-f.batches:
				b.answer(t, wire.Moved, 0)
			case <-future.Done():
				over = true
			}
		}
		if _, err := future.Wait(); !errors.Is(err, client.ErrUnavailable) {
			t.Fatal(err)
		}
	}
}

func TestAnAnswerThatNeverComesIsNotWaitedForForEver(t *testing.T) {
	f := newFake(t)
	c := f.dial(client.Options{Retry: 50 * time.Millisecond})
	future := c.Put(t.Context(), 0, key(1), nil)
	first := <-f.batches
	if _, err := future.Wait(); !errors.Is(err, client.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	first.answer(t, wire.OK, 0) // Too late: it is dropped, and the session goes on.
	for {
		next := c.Get(t.Context(), 0, key(2))
		for over := false; !over; {
			select {
			case b := <-f.batches:
				b.all(t)
			case <-next.Done():
				over = true
			}
		}
		if _, err := next.Wait(); err == nil {
			return
		}
	}
}

func TestAServerThatMakesNoSenseIsLeft(t *testing.T) {
	for name, frame := range map[string][]byte{
		"results of nothing": func() []byte {
			b, start := wire.BeginResults(nil)
			return wire.EndResults(wire.AppendResult(b, &wire.Result{Tag: 77}), start, 1)
		}(),
		"stale of nothing": wire.AppendMap(wire.AppendStale(nil, wire.Stale{Number: 77}), &wire.Map{Spans: []wire.Span{{Last: 1<<64 - 1, Node: wire.Nobody}}}),
		"a hello":          wire.AppendHello(nil, &wire.Hello{}),
		"nonsense":         {9, 0, 0, 0, 4, 1, 2, 3, 4, 5, 6, 7, 8},
		"a huge frame":     {255, 255, 255, 255, 4},
		"a goodbye":        wire.AppendGoodbye(nil, wire.ReasonStopping, "bye"),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			c := f.dial(client.Options{})
			future := c.Get(t.Context(), 0, key(1))
			first := <-f.batches
			first.send(t, frame)
			second := <-f.batches
			if second.conn == first.conn {
				t.Fatal("the session goes on")
			}
			second.all(t)
			if _, err := future.Wait(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestCloseEndsEverything(t *testing.T) {
	f := newFake(t)
	c := f.dial(client.Options{})
	future := c.Get(t.Context(), 0, key(1))
	<-f.batches
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := future.Wait(); !errors.Is(err, client.ErrClosed) {
		t.Fatal(err)
	}
	if _, err := c.Do(t.Context(), client.Get(0, key(1))); !errors.Is(err, client.ErrClosed) {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAddressesThatAreNoneAreRefused(t *testing.T) {
	for url, want := range map[string]string{
		"":                      "is no address of servers",
		"localhost:1":           "is no address of servers",
		"redis://localhost:1":   "use ostro://host:port",
		"ostro://localhost":     "is not host:port",
		"ostro://a:1,b":         "is not host:port",
		"ostro://127.0.0.1:1":   "connection refused",
		"ostro://:pw@a:1,":      "is not host:port",
		"ostros://127.0.0.1:1/": "connection refused",
	} {
		if _, err := client.Dial(t.Context(), url, client.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", url, err, want)
		}
	}
}

func TestThenIsCalledOnceWheneverItIsSet(t *testing.T) {
	f := newFake(t)
	c := f.dial(client.Options{})
	future := c.Get(t.Context(), 0, key(1))
	calls := make(chan string, 10)
	future.Then(func(r client.Result, err error) { calls <- fmt.Sprint("before ", string(r.Value), err) })
	(<-f.batches).all(t)
	if got := <-calls; got != "before key1<nil>" {
		t.Fatal(got)
	}
	future.Then(func(r client.Result, err error) { calls <- fmt.Sprint("after ", string(r.Value), err) })
	if got := <-calls; got != "after key1<nil>" || len(calls) > 0 {
		t.Fatal(got)
	}
}

func TestTablesThatCannotBeAreRefusedBeforeAnythingIsSent(t *testing.T) {
	f := newFake(t)
	c, ctx := f.dial(client.Options{Linger: time.Hour}), t.Context()
	for _, table := range []int{-1, 65536, 65537, 1 << 32, -1 << 32} {
		_, get := c.Do(ctx, client.Get(table, key(0)))
		_, put := c.Do(ctx, client.Put(table, key(0), nil))
		_, call := c.Do(ctx, client.Invoke(table, key(0), "f"))
		_, multiGet := c.MultiGet(ctx, table, [][]byte{key(0)})
		multiPut := c.MultiPut(ctx, table, client.Entry{Key: key(0)})
		var scan error
		for _, err := range c.Scan(ctx, table, client.ScanOptions{}) {
			scan = err
		}
		for i, err := range []error{get, put, call, multiGet, multiPut, scan} {
			if !errors.Is(err, client.ErrNoTable) || !strings.Contains(err.Error(), "tables are 0 to 65535") {
				t.Errorf("operation %d on table %d: %v", i, table, err)
			}
		}
	}
	future := c.Get(ctx, 65535, key(0))
	b := <-f.batches
	if len(b.ops) != 1 || b.ops[0].Table != 65535 {
		t.Errorf("what is sent is %+v", b.ops)
	}
	b.all(t)
	if _, err := future.Wait(); err != nil {
		t.Error(err)
	}
}
