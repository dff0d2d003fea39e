package migrate

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// Two nodes that speak by connections of cluster/peer, in a bubble with a clock of its own: their connections are pipes,
// for nobody can wait for the network and for such a clock.

// slowDisk takes some time for every read, once it is told to.
type slowDisk struct {
	*device.Memory
	takes atomic.Int64
}

type slowFile struct {
	device.File
	disk *slowDisk
}

func (d *slowDisk) Create(id record.SegmentID, bytes int) (device.File, error) {
	f, err := d.Memory.Create(id, bytes)
	return slowFile{f, d}, err
}

func (d *slowDisk) Open(id record.SegmentID) (device.File, error) {
	f, err := d.Memory.Open(id)
	return slowFile{f, d}, err
}

func (f slowFile) ReadAt(b []byte, at int64) (int, error) {
	time.Sleep(time.Duration(f.disk.takes.Load()))
	return f.File.ReadAt(b, at)
}

// sourceWithResults is a store with results of operations, most of them on a disk.
func sourceWithResults(t *testing.T, n int) (*store.Store, *slowDisk) {
	t.Helper()
	disk := &slowDisk{Memory: device.NewMemory()}
	t.Cleanup(disk.Close)
	st, err := store.Open(store.Options{
		Device: disk, Durability: store.EverySec, Cluster: true, LogID: 7, SegmentBytes: 64 << 10, MemoryBytes: 1 << 20, Heads: 1,
	})
	check(t, err)
	t.Cleanup(func() {
		time.Sleep(silent) // Of the bubble's clock, which stands still for who waits for a lock: no read is under way then.
		check(t, st.Close())
	})
	ss := session(t, st)
	for i := range n {
		runOnce(t, ss, i)
	}
	return st, disk
}

// runOnce runs an operation that leaves a result of a few kilobytes.
func runOnce(t *testing.T, ss *store.Session, i int) {
	t.Helper()
	inRounds(t, ss, func() store.Status {
		k := ss.Key(0, fmt.Append(nil, "key", i))
		_, _, s := ss.Once(&k, store.OpID{Client: 1, Seq: uint64(i)}, func(*store.View, bool) store.Effect {
			return store.Effect{Write: &store.Write{Value: []byte("v")}, Result: make([]byte, 4<<10)}
		})
		return s
	})
}

// unchanging is what a node knows of a cluster in which nothing happens.
type unchanging struct{ s meta.Snapshot }

func (u *unchanging) Snapshot() *meta.Snapshot { return &u.s }
func (u *unchanging) Changed() <-chan struct{} { return nil }
func (u *unchanging) Wait(ctx context.Context, enough func(*meta.Snapshot) bool) (*meta.Snapshot, error) {
	if enough(&u.s) {
		return &u.s, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// openGate holds nobody up.
type openGate struct{}

func (openGate) Open(view.Ranges)     {}
func (openGate) Expect(view.Ranges)   {}
func (openGate) Unexpect(view.Ranges) {}
func (openGate) Shut(context.Context, view.Ranges) (record.BatchID, error) {
	return 0, nil
}

// moveApart is a migration of everything that has just been written to etcd. Handle says what the source answers, connect to whom
// connections lead.
func moveApart(t *testing.T, from *store.Store, handle func(*Source, *peer.Server), connect func(*peer.Server, net.Conn)) *move {
	t.Helper()
	return moveDialing(t, time.Minute, from, handle, connect) // However slow the machine is.
}

// moveDialing is moveApart with a target that gives a connection so long, or as long as nodes do if that is 0.
func moveDialing(t *testing.T, patience time.Duration, from *store.Store, handle func(*Source, *peer.Server), connect func(*peer.Server, net.Conn)) *move {
	t.Helper()
	secret := []byte("tell nobody")
	m := meta.Migration{ID: 1, Source: "source", Target: "target", Ranges: view.RangesOf(view.Whole), Stage: meta.Moving}
	shelf := NewShelf(from)
	s, err := peer.NewServer(peer.ServerOptions{Node: "source", Secret: secret})
	check(t, err)
	handle(NewSource(given{m: m, shelf: shelf}), s)
	pool, err := peer.NewPool(peer.PoolOptions{
		Node: "target", Secret: secret, DialTimeout: patience,
		Address: func(view.NodeID) (string, error) { return "by pipe", nil },
		Dial: func(context.Context, string) (net.Conn, error) {
			near, far := net.Pipe()
			go connect(s, far)
			return near, nil
		},
	})
	check(t, err)
	d := New(Options{
		Self: "target", Peers: pool, Store: newStore(t), Gate: openGate{}, Taking: new(sync.Mutex),
		Cache:  &unchanging{meta.Snapshot{Migrations: map[uint64]meta.Migration{m.ID: m}}},
		Member: func() (*meta.Member, error) { return new(meta.Member), nil },
	})
	mv := newMove(d, m)
	t.Cleanup(func() {
		mv.stop()
		if mv.arrival != nil {
			mv.arrival.End()
		}
		check(t, pool.Close())
		check(t, s.Close())
		shelf.Close()
	})
	return mv
}

// keysIn are those of entries that lie one behind the other.
func keysIn(b []byte) map[string]bool {
	all := map[string]bool{}
	for len(b) > 0 {
		p := record.PtrOf(b)
		all[string(p.Key())] = true
		b = b[p.Length():]
	}
	return all
}

// counted counts the calls of a handler.
func counted(h peer.Handler, n *atomic.Int64) peer.Handler {
	return func(ctx context.Context, c *peer.Call) (any, []byte, error) {
		n.Add(1)
		return h(ctx, c)
	}
}

func TestATargetHearsThatItsSourceLooksForResultsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1500
		source, disk := sourceWithResults(t, n)
		var asked atomic.Int64
		m := moveApart(t, source, func(s *Source, to *peer.Server) {
			to.Handle(methodTransfer, counted(s.transfer, &asked))
		}, (*peer.Server).ServeConn)
		disk.takes.Store(int64(silent / 7))
		began := time.Now()
		next, err := m.transfer(t.Context())
		m.hearOut(t.Context(), false)
		took := time.Since(began)
		if next != opening || err != nil || asked.Load() != 1 {
			t.Errorf("after %s the target is %s and has asked %d times (%v)", took, next, asked.Load(), err)
		}
		if got := len(keysIn(m.first)); got != n {
			t.Errorf("%d of %d results came", got, n)
		}
		if patience := silent + m.o.Patience; took <= patience {
			t.Errorf("the source took %s, and the target has patience for %s", took, patience)
		}
	})
}

// forever is a handler that says nothing until its caller is gone.
func forever(ctx context.Context, _ *peer.Call) (any, []byte, error) {
	<-ctx.Done()
	return nil, nil, ctx.Err()
}

// A source may live, for its lease does, and say nothing to this target.
func TestAMigrationWhoseSourceSaysNothingIsReturnedInTime(t *testing.T) {
	for _, c := range []struct {
		name    string
		at      stage
		handle  func(*Source, *peer.Server)
		connect func(*peer.Server, net.Conn)
	}{
		{"while it yields", yielding, func(s *Source, to *peer.Server) {
			to.Handle(methodTransfer, forever)
		}, (*peer.Server).ServeConn},
		{"while it is pulled from", pulling, func(s *Source, to *peer.Server) {
			s.Handle(to)
			to.HandleQuietly(methodPull, forever)
		}, (*peer.Server).ServeConn},
		{"on the network", yielding, (*Source).Handle, func(*peer.Server, net.Conn) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := moveDialing(t, 0, filled(t, 100), c.handle, c.connect)
				began, at := time.Now(), m.at
				for ; m.at != returning; m.once(t.Context()) {
					at = m.at
				}
				if took, most := time.Since(began), m.o.Patience+2*silent; took < m.o.Patience || took > most {
					t.Errorf("it is returned after %s; want %s at least, %s at most", took, m.o.Patience, most)
				}
				if want := "nothing came from source to target for 15s"; at != c.at || !strings.HasPrefix(m.returns, want) {
					t.Errorf("while it was %s: %q, want %q while it is %s", at, m.returns, want, c.at)
				}
			})
		})
	}
}

// The source is dead, and what it had cannot be replayed for long.
func TestWhoWaitsForAKeyOfADeadSourceIsLetGoBeforeItsRecoveryEnds(t *testing.T) {
	m := moveApart(t, filled(t, 10), func(*Source, *peer.Server) {}, func(_ *peer.Server, c net.Conn) { _ = c.Close() })
	var err error
	m.arrival, err = m.o.Store.Arrive(store.ArriveOptions{Ranges: Ranges(m.want.Ranges), Ceiling: 100, Puller: m})
	check(t, err)
	ss := session(t, m.o.Store)
	look := func() store.Status {
		ss.Begin()
		defer ss.End()
		k := ss.Key(0, []byte(numbered(1)))
		_, st := ss.Get(&k)
		return st
	}
	if st := look(); st != store.Cold {
		t.Fatal(st)
	}
	fetched := make(chan error, 1)
	go func() { fetched <- ss.Fetch(t.Context()) }()
	await.True(t, "somebody waits for a key", func() bool { return m.priority.waiting() == 1 })
	var left sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	left.Go(func() { m.leave(ctx) })
	defer left.Wait()
	defer cancel()
	check(t, <-fetched)
	if st := look(); st != store.Cold {
		t.Errorf("a key of which nobody knows whether it exists is %s", st)
	}
}
