package migrate

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
)

func arriving(i int) store.ArrivingKey {
	return store.ArrivingKey{Table: 1, Bytes: fmt.Append(nil, "key:", i)}
}

func TestAKeyIsAskedForOnceHoweverManyWaitForIt(t *testing.T) {
	p := newPriority()
	var told atomic.Int64
	want := func() { p.want(arriving(1), func(error) { told.Add(1) }) }
	for range 10 {
		want()
	}
	batch := p.take(t.Context())
	want() // While it is under way.
	if len(batch) != 1 || told.Load() != 0 {
		t.Fatalf("%d keys are asked for, %d were told", len(batch), told.Load())
	}
	p.granted(batch)
	if told.Load() != 11 || p.waiting() != 0 {
		t.Fatalf("%d of 11 were told, %d keys are waited for", told.Load(), p.waiting())
	}
}

func TestBatchesAreBoundedAndTheNextGathersMeanwhile(t *testing.T) {
	p := newPriority()
	for i := range maxKeys + 3 {
		p.want(arriving(i), func(error) {})
	}
	first := p.take(t.Context())
	p.want(arriving(100), func(error) {})
	second := p.take(t.Context())
	if len(first) != maxKeys || len(second) != 4 {
		t.Fatalf("batches of %d and %d keys", len(first), len(second))
	}
}

func TestTheNextBatchGathersUnlessThereIsAWholeOneOrSomethingWasLeftBehind(t *testing.T) {
	p := newPriority()
	for i := range maxKeys {
		if !p.gathers() {
			t.Fatalf("%d keys do not wait for others", i)
		}
		p.want(arriving(i), func(error) {})
	}
	if p.gathers() {
		t.Error("a whole batch waits for more")
	}
	batch := p.take(t.Context())
	p.granted(batch[1:])
	if !p.gathers() {
		t.Error("nothing is left, and yet the next one does not gather")
	}
	if p.putBack(batch); p.gathers() {
		t.Error("what was left behind waits for more")
	}
}

func TestWhatWasLeftBehindIsAskedForFirstAndLeavesRoomForNewKeys(t *testing.T) {
	p := newPriority()
	for i := range 3 * maxKeys {
		p.want(arriving(i), func(error) {})
	}
	first := p.take(t.Context())
	p.granted(first[:1])
	p.putBack(first)
	second := p.take(t.Context())
	if !slices.Equal(second[:maxKeys/2], first[1:1+maxKeys/2]) {
		t.Error("the oldest of those that were left behind do not come first, in their order")
	}
	for i, w := range second[maxKeys/2:] {
		if want := arriving(maxKeys + i); !bytes.Equal(w.key.Bytes, want.Bytes) {
			t.Fatalf("%s comes after those that were left behind, want %s", w.key.Bytes, want.Bytes)
		}
	}
	p.granted(second)
	p.putBack(second)
	for asked := len(second) + 1; asked < 3*maxKeys; {
		batch := p.take(t.Context())
		asked += len(batch)
		p.granted(batch)
		p.putBack(batch)
	}
	if p.waiting() != 0 {
		t.Errorf("%d keys were never asked for", p.waiting())
	}
}

func TestWhoWaitsIsLetGoInTheEnd(t *testing.T) {
	p := newPriority()
	var told atomic.Int64
	for i := range 40 {
		p.want(arriving(i), func(error) { told.Add(1) })
	}
	batch := p.take(t.Context())
	p.end()
	p.granted(batch[:5]) // An answer that comes late tells nobody twice.
	p.putBack(batch)
	p.want(arriving(1), func(error) { told.Add(1) })
	if told.Load() != 41 {
		t.Fatalf("%d of 41 were told", told.Load())
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if batch := p.take(over); batch != nil {
		t.Fatalf("%d keys after the end", len(batch))
	}
}
