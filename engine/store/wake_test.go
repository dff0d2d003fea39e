package store

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/await"
)

// gated opens segments only when the test lets it.
type gated struct {
	*hlogtest.Copies
	gate chan struct{}
}

func (g *gated) Open(ctx context.Context, id record.SegmentID, memory []byte) error {
	select {
	case <-g.gate:
	case <-ctx.Done():
		return ctx.Err()
	}
	return g.Copies.Open(ctx, id, memory)
}

// stands tells whether a goroutine is in a function, in that state.
func stands(state, function string) bool {
	dump := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(dump[:runtime.Stack(dump, true)]), "\n\n") {
		first, rest, _ := strings.Cut(stack, "\n")
		if strings.Contains(first, state) && strings.Contains(rest, function) {
			return true
		}
	}
	return false
}

// The maintenance, which looks after all who wait ten times a second, stands still meanwhile: only the
// segment itself can tell.
func TestAWriteThatWaitsForASegmentIsWokenWhenOneIsOpenElsewhere(t *testing.T) {
	copies := &gated{hlogtest.New(t, 1), make(chan struct{})}
	b := &bench{t: t, dev: device.NewMemory()}
	b.o = Options{Durability: EverySec, SegmentBytes: 64 << 10, Heads: 4, Now: b.now.Load, Replicator: copies}
	opened := make(chan struct{})
	go func() { // All that a store opens before it serves, and no more.
		for {
			select {
			case copies.gate <- struct{}{}:
			case <-opened:
				return
			}
		}
	}()
	b.st = b.open(b.dev)
	t.Cleanup(copies.Flow)
	ss := b.session()
	opened <- struct{}{}
	value := []byte(strings.Repeat("x", 10_000))
	write := func(n int) Status {
		ss.Begin()
		defer ss.End()
		k := ss.Key(0, fmt.Appendf(nil, "key:%d", n))
		s := ss.Put(&k, Write{Value: value}, nil)
		ss.Seal()
		return s
	}
	unlock := sync.OnceFunc(b.st.cleaning.Unlock)
	b.st.cleaning.Lock() // The maintenance waits for it in each of its rounds.
	defer unlock()
	n := 0
	var fetch *Fetch
	var woken chan struct{}
	for waits := false; !waits; { // One that was let in before may have been opened meanwhile.
		for ; write(n) != Cold; n++ {
			if n > 10_000 {
				t.Fatal("segments are taken that are not open elsewhere")
			}
		}
		fetch = ss.TakeFetch()
		woken = make(chan struct{})
		fetch.Start(func() { close(woken) })
		await.True(t, "the write waits, and the maintenance stands still", func() bool {
			waits = stands("[select", "(*Store).awaitRoom") && stands("[sync.Mutex.Lock", "(*Store).buryCondemned")
			select {
			case <-woken:
				return true
			default:
				return waits
			}
		})
		if !waits {
			ss.Resume(fetch)
		}
	}
	close(copies.gate) // From here on all are opened.
	select {
	case <-woken:
	case <-time.After(time.Minute):
		t.Error("segments are ready, and the write was not woken")
	}
	unlock()
	ss.Resume(fetch)
	if s := write(n); s != OK {
		t.Error(s, ss.Err())
	}
}
