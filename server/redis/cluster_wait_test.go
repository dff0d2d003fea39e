package redis_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
)

// recovers has a node wait for the slot of a key.
func (tw *town) recovers(node int, key string) {
	tw.publish(func() { tw.nodes[node].state.Recovering = slotRanges(key) })
}

func (tw *town) recovered(node int) {
	tw.publish(func() { tw.nodes[node].state.Recovering = nil })
}

// waits waits until a node has so many connections whose input was put aside.
func (n *townNode) waits(t *testing.T, count int) {
	t.Helper()
	await.True(t, fmt.Sprint(count, " clients wait"), func() bool { return n.srv.HeldBuffers() >= count })
}

func TestCommandsWaitForARangeThatIsBeingRecovered(t *testing.T) {
	tw := newTown(t, 2, redis.Config{Loops: 2})
	late, soon := tw.keyOf(0, 0), tw.keyOf(0, 1)
	tw.recovers(0, late)
	var waiting []*rawClient
	for i, args := range [][]string{{"get", late}, {"incr", late}, {"mget", late, sibling(late)}, {"dbsize"}, {"flushall"}} {
		c := tw.dial(0)
		waiting = append(waiting, c)
		must(t, c.send("client", "setname", fmt.Sprint("waiter", i)))
		// What stands before is answered, what stands behind waits with it.
		must(t, c.sendAll([][]string{{"set", soon, "1"}, args, {"echo", "last"}}))
		for _, want := range []string{"OK", "OK"} {
			if r, err := c.receive(); err != nil || r.text != want {
				t.Fatalf("%+v, %v", r, err)
			}
		}
	}
	tw.nodes[0].waits(t, len(waiting))
	other := tw.dial(0)
	for range 20 {
		if got := ask(t, other, "get", soon); got != "1" {
			t.Fatalf("another connection gets %q", got)
		}
	}
	tw.give(slotRanges(tw.keyOf(1, 0)), "n1") // Another change does not help them.
	ask(t, other, "get", soon)
	tw.recovered(0)
	for i, want := range []string{"", "", "", "", "OK"} {
		r, err := waiting[i].receive()
		if err != nil || r.kind == '-' || want != "" && r.text != want {
			t.Fatalf("waiter %d: %+v, %v", i, r, err)
		}
		if r, err := waiting[i].receive(); err != nil || r.text != "last" {
			t.Fatalf("waiter %d: %+v, %v", i, r, err)
		}
	}
}

func TestATransactionWaitsForARangeThatIsBeingRecovered(t *testing.T) {
	tw := newTown(t, 2, redis.Config{})
	key := tw.keyOf(0, 0)
	c := tw.dial(0)
	ask(t, c, "multi")
	tw.recovers(0, key)
	if got := ask(t, c, "incr", key); got != "QUEUED" {
		t.Fatal(got)
	}
	must(t, c.send("exec"))
	tw.nodes[0].waits(t, 1)
	tw.recovered(0)
	if r, err := c.receive(); err != nil || len(r.items) != 1 || r.items[0].text != "1" {
		t.Fatalf("EXEC: %+v, %v", r, err)
	}
}

func TestARangeThatLeavesWhileCommandsWaitRedirectsThem(t *testing.T) {
	tw := newTown(t, 2, redis.Config{})
	key := tw.keyOf(0, 0)
	tw.recovers(0, key)
	c := tw.dial(0)
	must(t, c.send("get", key))
	tw.nodes[0].waits(t, 1)
	tw.give(slotRanges(key), "n2")
	if r, err := c.receive(); err != nil || r.text != tw.movedTo(key, 1) {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestWaitingEndsAfterItsBound(t *testing.T) {
	tw := newTown(t, 2, redis.Config{ClusterWait: 50 * time.Millisecond})
	key := tw.keyOf(0, 0)
	tw.recovers(0, key)
	c := tw.dial(0)
	for range 3 {
		if got := ask(t, c, "get", key); !strings.HasPrefix(got, "CLUSTERDOWN ") {
			t.Fatalf("got %q", got)
		}
	}
	tw.recovered(0)
	if got := ask(t, c, "set", key, "1"); got != "OK" {
		t.Fatal(got)
	}
}

func TestAShutdownDoesNotWaitForARecovery(t *testing.T) {
	tw := newTown(t, 2, redis.Config{ClusterWait: time.Hour})
	key := tw.keyOf(0, 0)
	tw.recovers(0, key)
	c := tw.dial(0)
	must(t, c.send("get", key))
	tw.nodes[0].waits(t, 1)
	if err := tw.nodes[0].srv.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := c.receive(); err != nil || !strings.HasPrefix(r.text, "CLUSTERDOWN ") {
		t.Fatalf("%+v, %v", r, err)
	}
}

// ended tells whether the server closed the connection without an answer.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func TestANodeWithoutALeaseExecutesNothing(t *testing.T) {
	tw := newTown(t, 2, redis.Config{})
	key := tw.keyOf(0, 0)
	c := tw.dial(0)
	ask(t, c, "set", key, "before")
	tw.nodes[0].dead.Store(true)
	// What the loop believes may be a moment old: then it executes, and closes.
	await.True(t, "commands are refused", func() bool {
		c := tw.dial(0)
		r, err := c.do("set", key, "after")
		if err != nil {
			if !ended(err) {
				t.Fatal(err)
			}
			return false
		}
		if !strings.HasPrefix(r.text, "CLUSTERDOWN ") {
			t.Fatalf("SET without a lease answers %q", r.text)
		}
		return true
	})
	c = tw.dial(0)
	for _, args := range [][]string{{"get", key}, {"mget", key}, {"dbsize"}, {"flushall"}, {"watch", key}} {
		if got := ask(t, c, args...); !strings.HasPrefix(got, "CLUSTERDOWN ") {
			t.Errorf("%q answers %q", args, got)
		}
	}
	if got := ask(t, c, "ping"); got != "PONG" {
		t.Error(got)
	}
	if got := ask(t, c, "cluster", "info"); !strings.Contains(got, "cluster_state:fail") {
		t.Error(got)
	}
	tw.nodes[0].dead.Store(false)
	if got := ask(t, c, "set", key, "again"); got != "OK" {
		t.Error(got)
	}
}

// The lease ends while commands run: whoever was in that round gets no answer.
func TestAnswersOfARoundThatOutlivedTheLeaseAreDropped(t *testing.T) {
	tw := newTown(t, 1, redis.Config{Loops: 1})
	key := tw.keyOf(0, 0)
	bystander, c := tw.dial(0), tw.dial(0)
	ask(t, c, "set", key, "1")
	release := tw.nodes[0].srv.HoldLoop(0)
	must(t, c.send("get", key))
	must(t, bystander.send("ping"))
	tw.nodes[0].srv.LeaseBelieved(0) // as if the loop had just asked
	tw.nodes[0].dead.Store(true)
	release()
	if r, err := c.receive(); err == nil {
		t.Fatalf("an answer left without a lease: %+v", r)
	} else if !ended(err) {
		t.Fatal(err)
	}
	if r, err := bystander.receive(); err != nil || r.text != "PONG" {
		t.Errorf("a bystander got %+v, %v", r, err)
	}
	if got := ask(t, bystander, "ping"); got != "PONG" {
		t.Error(got)
	}
}

// Replies that wait for copies when the lease ends are not sent, though the copies are made later.
func TestHeldAnswersAreDroppedWhenTheLeaseEnds(t *testing.T) {
	copies := hlogtest.New(t, 1)
	tw := newTownOn(t, 1, redis.Config{Loops: 1}, func() store.Options {
		return store.Options{Dir: t.TempDir(), Durability: store.EverySec, Replicator: copies}
	})
	n := tw.nodes[0]
	for range 20 {
		c := tw.dial(0)
		if got := ask(t, c, "set", "a", "1"); got != "OK" {
			t.Fatal(got)
		}
		copies.Hold()
		release := n.srv.HoldLoop(0)
		must(t, c.send("set", "a", "2"))
		n.srv.LeaseBelieved(0)
		n.lives.Store(1) // when the round has run, and not when its replies are released
		release()
		for !n.dead.Load() {
			runtime.Gosched()
		}
		copies.Flow()
		if r, err := c.receive(); err == nil {
			t.Fatalf("an answer left without a lease: %+v", r)
		} else if !ended(err) {
			t.Fatal(err)
		}
		n.dead.Store(false)
	}
}

// A node that was deposed knows nothing of its keys any more: no client shall take what it says for the last word.
func TestANodeWhoseLogIsOverSendsClientsAway(t *testing.T) {
	copies := hlogtest.New(t, 1)
	tw := newTownOn(t, 1, redis.Config{Loops: 1}, func() store.Options {
		return store.Options{Dir: t.TempDir(), Durability: store.EverySec, Replicator: copies}
	})
	c := tw.dial(0)
	if got := ask(t, c, "set", "a", "1"); got != "OK" {
		t.Fatal(got)
	}
	copies.Break(errors.New("this node was deposed"))
	for _, command := range [][]string{{"set", "a", "2"}, {"del", "a"}, {"append", "a", "x"}} {
		got := ask(t, c, command...)
		if !strings.HasPrefix(got, "CLUSTERDOWN") || !strings.Contains(got, "this node was deposed") {
			t.Errorf("%s: %s", command, got)
		}
	}
}

// A flush deletes key by key in a cluster: its client waits, others go on, and in a
// transaction it happens once.
func TestFlushingWaitsInTheBackground(t *testing.T) {
	tw := newTownOn(t, 1, redis.Config{Loops: 1}, func() store.Options {
		return store.Options{Dir: t.TempDir(), Durability: store.EverySec, Cluster: true}
	})
	c, other := tw.dial(0), tw.dial(0)
	const keys = 20_000
	var commands [][]string
	for i := range keys {
		commands = append(commands, []string{"set", fmt.Sprint("key:", i), "1"})
	}
	converseAll(t, c, commands)
	for _, flush := range []string{"flushall", "flushdb"} {
		must(t, c.sendAll([][]string{{"set", "{a}1", "1"}, {flush}, {"dbsize"}, {"incr", "{a}n"}}))
		if got := ask(t, other, "ping"); got != "PONG" {
			t.Fatal(got)
		}
		for _, want := range []string{"OK", "OK", "0", "1"} {
			if r, err := c.receive(); err != nil || r.text != want {
				t.Fatalf("%+v, %v; want %s", r, err, want)
			}
		}
	}
	must(t, c.sendAll([][]string{{"multi"}, {"incr", "{a}n"}, {"flushall"}, {"incr", "{a}n"}, {"dbsize"}, {"exec"}}))
	for range 5 {
		if _, err := c.receive(); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := c.receive(); err != nil || flat(r) != "[2 OK 1 1]" {
		t.Fatalf("EXEC: %s, %v", flat(r), err)
	}
}

// What a function reads it may find for itself: that no key was named says nothing.
func TestAFunctionThatNamesNoKeysNeedsALeaseAllTheSame(t *testing.T) {
	tw := newTown(t, 1, redis.Config{Loops: 1})
	n, key := tw.nodes[0], tw.keyOf(0, 0)
	loadCalls(t, tw.dial(0))
	for _, call := range [][]string{{"fcall", "look", "0", key}, {"fcall_ro", "look", "0", key}, {"fcall", "put", "0", key, "new"}} {
		c := tw.dial(0)
		ask(t, c, "set", key, "old")
		ask(t, c, call...)
		release := n.srv.HoldLoop(0)
		must(t, c.send(call...))
		n.srv.LeaseBelieved(0) // as if the loop had just asked
		n.dead.Store(true)
		release()
		if r, err := c.receive(); err == nil {
			t.Errorf("%q was answered without a lease: %+v", call, r)
		} else if !ended(err) {
			t.Fatal(err)
		}
		if got := ask(t, tw.dial(0), call...); !strings.HasPrefix(got, "CLUSTERDOWN ") {
			t.Errorf("%q without a lease: %q", call, got)
		}
		n.dead.Store(false)
	}
}
