package hlog

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/epoch"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/await"
)

func TestMain(m *testing.M) { os.Exit(await.RunToEnd(m)) }

// running opens a log with all its background work.
func running(t *testing.T, o Options) *Log {
	t.Helper()
	o.SegmentBytes, o.Heads, o.Epoch = 4096, 2, epoch.New(16)
	o.Now, o.Logger = func() int64 { return 1 }, slog.New(slog.DiscardHandler)
	l, err := Open(o, 1)
	if err != nil {
		t.Fatal(err)
	}
	l.Start()
	return l
}

// write appends an entry and seals it.
func write(h *Head, key, value string, logged bool) (record.Address, error) {
	h.Lock()
	defer h.Unlock()
	n := record.Size(len(key), len(value), false)
	a, room, err := h.Reserve(n)
	if err != nil {
		return 0, err
	}
	record.Encode(room, &record.Header{Type: record.TypePut, Version: 1}, []byte(key), []byte(value), logged)
	h.Keep(n)
	h.Seal()
	return a, nil
}

// Segments are filled, settled or frozen, flushed, evicted, read and removed,
// all by different goroutines. What is read must be what was written.
func TestSegmentsMayGoAtAnyMoment(t *testing.T) {
	for _, logged := range []bool{true, false} {
		t.Run(fmt.Sprintf("logged=%v", logged), func(t *testing.T) {
			dev := device.NewMemory()
			defer dev.Close()
			l := running(t, Options{Device: dev, Logged: logged})
			var ended atomic.Bool
			var writers, others sync.WaitGroup
			for n := range 2 {
				writers.Go(func() { writeAndReadBack(t, l, n, logged) })
			}
			others.Go(func() { takeApart(t, l, &ended) })
			writers.Wait()
			ended.Store(true)
			others.Wait()
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if l.Resident() < 0 {
				t.Errorf("%d segments are resident", l.Resident())
			}
		})
	}
}

func writeAndReadBack(t *testing.T, l *Log, n int, logged bool) {
	g, err := l.opts.Epoch.Register()
	if err != nil {
		t.Error(err)
		return
	}
	defer g.Unregister()
	for i := range 20_000 {
		key := fmt.Sprintf("%d:%d", n, i)
		g.Enter()
		a, err := write(l.Head(n), key, key+key, logged)
		if err != nil {
			t.Error(err)
			g.Leave()
			return
		}
		s := l.Segment(a.Slot())
		if p, ok := l.Entry(a); ok && s != nil {
			if string(p.Key()) != key || string(p.Value()) != key+key {
				t.Errorf("%s is %s=%s in memory", key, p.Key(), p.Value())
			}
		} else if s != nil {
			if b, err := l.Fetch(a, s.ID); err == nil && string(record.PtrOf(b).Key()) != key {
				t.Errorf("%s is %s on the device", key, record.PtrOf(b).Key())
			}
		}
		g.Leave()
	}
}

// takeApart freezes, flushes, evicts and removes closed segments.
func takeApart(t *testing.T, l *Log, ended *atomic.Bool) {
	g, err := l.opts.Epoch.Register()
	if err != nil {
		t.Error(err)
		return
	}
	defer g.Unregister()
	for turn := 0; !ended.Load(); turn++ {
		for i, s := range l.Segments() {
			if !s.Closed() {
				continue
			}
			var frozen atomic.Bool
			l.Freeze(s, func() { frozen.Store(true) })
			for !frozen.Load() && !ended.Load() {
				l.opts.Epoch.Drain()
			}
			if !frozen.Load() {
				return
			}
			g.Enter()
			if (turn+i)%3 > 0 {
				if err := l.Flush(s); err != nil {
					t.Errorf("flush: %v", err)
				}
				l.Evict(s)
			}
			if (turn+i)%2 > 0 {
				if err := l.Remove(s, false); err != nil {
					t.Errorf("remove: %v", err)
				}
			}
			g.Leave()
		}
		l.opts.Epoch.Drain()
	}
}
