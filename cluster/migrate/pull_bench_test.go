package migrate

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
)

// BenchmarkPull moves records of 30 B keys and 100 B values from one store to another over a socket of this machine:
// source, wire and replay, without clients and without copies. It tells what all of that takes of the processors for a record.
func BenchmarkPull(b *testing.B) {
	peer.Listen(8)
	defer peer.Listen(0)
	for _, records := range []int{500_000} {
		for _, c := range []struct {
			name              string
			bytes, partitions int
		}{{"20KB x32", 20 << 10, 32}, {"20KB x8", 20 << 10, 8}, {"80KB x32", 80 << 10, 32}, {"64KB x4", 64 << 10, 4}, {"20KB x1", 20 << 10, 1}} {
			b.Run(c.name, func(b *testing.B) {
				source := filled(b, records)
				var took time.Duration
				var moved int64
				for b.Loop() {
					b.StopTimer()
					p := pullsBetween(b, source, c.bytes, c.partitions)
					check(b, p.m.d.o.Store.Prepare(b.Context(), Ranges(view.RangesOf(view.Whole)), int64(records), int64(records)*160))
					b.StartTimer()
					began := processTime()
					if err := p.all(b.Context()); err != nil {
						b.Fatal(err)
					}
					took += processTime() - began
					moved += p.m.records.Load()
					b.StopTimer()
					if got := p.m.records.Load(); got < int64(records) {
						b.Fatalf("%d of %d records came", got, records)
					}
					b.SetBytes(p.m.bytes.Load())
					b.StartTimer()
				}
				b.ReportMetric(float64(took.Nanoseconds())/float64(moved), "cpu-ns/record")
			})
		}
	}
}

// processTime is how long this process has run, on all processors together.
func processTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// filled is a store with records.
func filled(b testing.TB, n int) *store.Store { return fill(b, newStore(b), n) }

// fill writes records to a store.
func fill(b testing.TB, st *store.Store, n int) *store.Store { return fillWith(b, st, n, 100) }

// fillWith is fill with values of so many bytes.
func fillWith(b testing.TB, st *store.Store, n, bytes int) *store.Store {
	b.Helper()
	ss, err := st.NewSession()
	check(b, err)
	defer ss.Close()
	value := make([]byte, bytes)
	for i := range n {
		key := nthKey(i)
		for s := store.Cold; s != store.OK; {
			ss.Begin()
			k := ss.Key(0, key)
			s = ss.Put(&k, store.Write{Value: value}, nil)
			ss.Seal()
			ss.End()
			if s == store.Cold { // It waits for room.
				check(b, ss.Fetch(b.Context()))
			} else if s != store.OK {
				b.Fatal(s, ss.Err())
			}
		}
	}
	return st
}

func newStore(b testing.TB) *store.Store {
	b.Helper()
	st, err := store.Open(store.Options{Cluster: true, LogID: 7})
	check(b, err)
	b.Cleanup(func() { check(b, st.Close()) })
	return st
}

func check(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// given is an origin that has yielded everything.
type given struct {
	LateOrigin // Nobody copies.
	m          meta.Migration
	shelf      *Shelf
}

func (g given) Yield(context.Context, ID, view.NodeID, meta.Asked) (meta.Migration, time.Time, error) {
	return g.m, time.Time{}, nil
}
func (g given) Given(context.Context, ID, view.NodeID) (meta.Migration, error) { return g.m, nil }
func (g given) Sample(context.Context, ID, view.NodeID, func(view.Ranges) error) error {
	return nil
}
func (g given) Sampled(ID, view.NodeID) []store.ArrivingKey { return nil }
func (g given) Returned(context.Context, ID) error          { return nil }
func (g given) Shelf() (*Shelf, error)                      { return g.shelf, nil }

// pullsBetween is a migration of everything from a store to an empty one that has just been opened.
func pullsBetween(b testing.TB, source *store.Store, bytes, partitions int) *pulls {
	b.Helper()
	return pullsWith(b, source, bytes, partitions, meta.MigrationOptions{})
}

// pullsWith is pullsBetween with options.
func pullsWith(b testing.TB, source *store.Store, bytes, partitions int, o meta.MigrationOptions) *pulls {
	b.Helper()
	return pullsOf(b, source, bytes, partitions, o, (*Source).Handle)
}

// pullsOf is pullsWith from a source that answers what handle says.
func pullsOf(b testing.TB, source *store.Store, bytes, partitions int, o meta.MigrationOptions, handle func(*Source, *peer.Server)) *pulls {
	b.Helper()
	m := meta.Migration{ID: 1, Source: "source", Target: "target", Ranges: view.RangesOf(view.Whole), Stage: meta.Moving, Options: o}
	addr := serve(b, source, m, handle)
	return pullsFrom(b, addr, source.Ceiling(), bytes, partitions, m)
}

// secret is what both nodes know.
var secret = []byte("tell nobody")

// serve is a source that has given everything away, and answers what handle says.
func serve(b testing.TB, source *store.Store, m meta.Migration, handle func(*Source, *peer.Server)) (addr string) {
	b.Helper()
	shelf := NewShelf(source)
	s, err := peer.NewServer(peer.ServerOptions{Node: "source", Secret: secret})
	check(b, err)
	handle(NewSource(given{m: m, shelf: shelf}), s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(b, err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.ServeConn(c)
		}
	}()
	b.Cleanup(func() {
		_ = l.Close()
		check(b, s.Close())
		shelf.Close()
	})
	return l.Addr().String()
}

// pullsFrom is a migration of everything from a source at some address to an empty store that has just been opened.
func pullsFrom(b testing.TB, addr string, ceiling uint64, bytes, partitions int, m meta.Migration) *pulls {
	b.Helper()
	pool, err := peer.NewPool(peer.PoolOptions{Node: "target", Secret: secret, DialTimeout: time.Minute, Address: func(view.NodeID) (string, error) { return addr, nil }})
	check(b, err)
	d := New(Options{Self: "target", Peers: pool, Store: newStore(b), PullBytes: bytes, Partitions: partitions, SharedMemory: true, Log: slog.New(slog.DiscardHandler)})
	mv := newMove(d, m)
	mv.arrival, err = d.o.Store.Arrive(store.ArriveOptions{Ranges: Ranges(m.Ranges), Ceiling: ceiling, Puller: mv, Indirect: m.Options.Indirect()})
	check(b, err)
	mv.pulls = newPulls(mv)
	mv.pulls.hurried = func() bool { return true }
	check(b, mv.pulls.open())
	b.Cleanup(func() {
		mv.pulls.close()
		mv.arrival.End()
		check(b, pool.Close())
	})
	return mv.pulls
}
