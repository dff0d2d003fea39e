package call_test

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/call"
)

// A door answers many calls at a time, and of those on one key that have ended the first: in a crowd of forty each would
// lose 39 times of 40, were it left to chance.
func TestLongCallsOnOneKeyAreAllApplied(t *testing.T) {
	const clients, each = 40, 4
	w := newWorld(t, store.Options{Durability: store.None})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var ended atomic.Int64
	left := map[*began]int{}
	for range clients {
		b := &began{world: w, r: w.request("count", "k", longWork), told: &ended}
		b.begin()
		left[b] = each
	}
	for len(left) > 0 {
		await.True(t, "all that were started have ended", func() bool { return ended.Load() == w.host.Metrics().Scheduled })
		waiting := slices.Collect(maps.Keys(left))
		random.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
		for _, b := range waiting {
			if !b.hasEnded() || !b.goOn() {
				continue
			}
			if left[b]--; left[b] == 0 {
				delete(left, b)
				continue
			}
			b.task = nil
			b.begin()
		}
	}
	got, err := w.call(w.request("look", "k"))
	if err != nil || binary.LittleEndian.Uint64([]byte(got)) != clients*each {
		t.Fatalf("%x after %d calls: %v", got, clients*each, err)
	}
}

// began is a call that has not been answered yet.
type began struct {
	*world
	r    *call.Request
	task *call.Task
	done chan struct{}
	told *atomic.Int64 // counts its ends, if it is not nil
}

// losing begins a long call, and changes what it has read before it is applied: it runs again, or stands in line.
func (w *world) losing() *began {
	w.t.Helper()
	b := &began{world: w, r: w.request("count", "k", longWork)}
	b.begin()
	<-b.done
	w.put("k", "another.")
	b.begin()
	return b
}

// begin has a call run that is not applied.
func (b *began) begin() {
	b.t.Helper()
	if b.goOn() {
		b.t.Fatal("a call that lasts and loses has ended")
	}
}

// goOn goes on with a call; true: it has been applied.
func (b *began) goOn() bool {
	b.t.Helper()
	b.sess.Begin()
	v, task := b.caller.Call(b.r, b.task)
	b.sess.End()
	if v == call.Done && b.caller.Err == nil {
		return true
	}
	if v != call.Later {
		b.t.Fatalf("%v, %v", v, b.caller.Err)
	}
	done := make(chan struct{})
	b.task, b.done = task, done
	err := b.host.Start(b.r, task, func() {
		close(done)
		if b.told != nil {
			b.told.Add(1)
		}
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return false
}

func (b *began) hasEnded() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// finish ends a call that was begun.
func (b *began) finish() {
	b.t.Helper()
	if <-b.done; !b.goOn() {
		b.t.Fatal("it has lost again")
	}
}

func TestWhoIsNeverAnsweredHoldsUpNobodyForLong(t *testing.T) {
	w := newWorld(t, store.Options{Durability: store.None})
	silent := w.losing()
	<-silent.done // It stays the first of the line: nobody goes on with it.
	w.losing().finish()
}

func TestAClientThatHasGoneLeavesTheLine(t *testing.T) {
	w := newWorld(t, store.Options{Durability: store.None})
	gone := w.losing()
	gone.task.Cancel()
	w.losing().finish()
}

func TestCallsThatStandInLineEndWithTheirHost(t *testing.T) {
	w := newWorld(t, store.Options{Durability: store.None})
	first, second := w.losing(), w.losing()
	w.host.Close()
	<-first.done
	<-second.done
}
