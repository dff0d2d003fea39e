package meta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/internal/port"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// note writes something small, as who is allowed to; unnote takes it back.
func (w writer) note(t *testing.T, n int) error {
	return w.change(patience(t), func(e *edit) error { return e.put(keyWish(noteOf(n)), Wish{Act: Add}) })
}

func (w writer) unnote(t *testing.T, n int) error {
	return w.change(patience(t), func(e *edit) error {
		e.delete(keyWish(noteOf(n)))
		return nil
	})
}

func noteOf(n int) view.NodeID { return view.NodeID(fmt.Sprint("note", n)) }

func TestAWatcherResumesAfterCompaction(t *testing.T) {
	direct := open(t)
	m := join(t, direct, "n1")
	p := proxyTo(t, shared.Addr())
	cache := follow(t, openAt(t, p.addr()))
	p.cut()
	for i := range 5 {
		ok(t, m.note(t, i))
	}
	ok(t, m.unnote(t, 1))
	_, err := direct.client.Compact(patience(t), read(t, direct).Revision)
	ok(t, err)
	if n := len(cache.Snapshot().Wishes); n != 0 {
		t.Fatalf("cut off, it knows %d wishes", n)
	}
	p.mend()
	await(t, cache, "the wishes", func(s *Snapshot) bool { return len(s.Wishes) == 4 })
	ok(t, m.note(t, 5))
	await(t, cache, "a later wish", func(s *Snapshot) bool { return len(s.Wishes) == 5 })
}

// etcd tells who is more than a thousand revisions behind in several responses. A watch that begins again after one of them
// must ask for what is in the others.
func TestASnapshotIsNoNewerThanTheLastEventThatItKnows(t *testing.T) {
	s := open(t)
	m := join(t, s, "n1")
	c := &Cache{store: s, changed: make(chan struct{})}
	c.current.Store(read(t, s))
	ok(t, m.note(t, 1))
	all, err := s.client.Get(patience(t), s.prefix+keyWish(noteOf(1)))
	ok(t, err)
	ok(t, c.apply(clientv3.WatchResponse{
		Header: &etcdserverpb.ResponseHeader{Revision: all.Header.Revision + 2000},
		Events: []*clientv3.Event{{Type: mvccpb.Event_PUT, Kv: all.Kvs[0]}},
	}))
	if got := c.Snapshot(); got.Revision != all.Kvs[0].ModRevision || len(got.Wishes) != 1 {
		t.Fatalf("it has %d wishes at revision %d, not at %d", len(got.Wishes), got.Revision, all.Kvs[0].ModRevision)
	}
}

func TestAWatcherSeesEveryDeletion(t *testing.T) {
	s := open(t)
	m, cache := join(t, s, "n1"), follow(t, s)
	for i := range 5 {
		ok(t, m.note(t, i))
		await(t, cache, "the wish", func(s *Snapshot) bool { return len(s.Wishes) == 1 })
		ok(t, m.unnote(t, i))
		await(t, cache, "its end", func(s *Snapshot) bool { return len(s.Wishes) == 0 })
	}
}

func TestAMapThatTakesAViewBackIsNotBelieved(t *testing.T) {
	s, _, _ := three(t)
	cache := follow(t, s)
	before := cache.Snapshot().Map
	bad, err := view.Initial("n2") // n1 and n3 lose all, and no view rises
	ok(t, err)
	text, err := json.Marshal(bad)
	ok(t, err)
	_, err = s.client.Put(patience(t), s.prefix+keyMap, string(text))
	ok(t, err)
	next, err := s.Read(patience(t))
	ok(t, err)
	wantError(t, cache.install(next), "fell from 1 to 0")
	old := *cache.Snapshot()
	old.Revision--
	wantError(t, cache.install(&old), "it was restored from a backup")
	if !cache.Snapshot().Map.Equal(before) {
		t.Fatal("the cache believes it")
	}
}

func TestAnEtcdRestartStopsNothing(t *testing.T) {
	dir, addr := t.TempDir(), port.For(t).Addr()
	first, err := StartEmbedded(patience(t), EmbeddedConfig{Dir: dir, Addr: addr, Log: quiet})
	ok(t, err)
	s := openAt(t, addr)
	configure(t, s, 20*time.Second)
	m, cache := join(t, s, "n1"), follow(t, s)
	term := campaign(t, m)
	ok(t, term.Begin(patience(t), "n1"))
	await(t, cache, "the map", func(s *Snapshot) bool { return !s.Map.IsZero() })
	first.Close()
	if !m.Lease.Alive() || cache.Snapshot().Map.ViewID("n1") != 1 {
		t.Fatal("without etcd the node does not go on")
	}
	deadline := m.Lease.deadline.Load()
	second, err := StartEmbedded(patience(t), EmbeddedConfig{Dir: dir, Addr: addr, Log: quiet})
	ok(t, err)
	t.Cleanup(second.Close)
	ok(t, term.note(t, 1))
	await(t, cache, "the wish", func(s *Snapshot) bool { return len(s.Wishes) == 1 && s.Coordinator == "n1" })
	late := patience(t)
	for m.Lease.deadline.Load() <= deadline {
		select {
		case <-m.Lease.Lost():
			t.Fatal("etcd forgot the lease")
		case <-late.Done():
			t.Fatal("the lease is not renewed")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestWhoWaitsForWhatItWritesNeedsNoAnswer(t *testing.T) {
	s := open(t)
	m, cache := join(t, s, "n1"), follow(t, s)
	there := func(s *Snapshot) bool { return len(s.Wishes) == 1 }
	seen, err := cache.WaitWritten(patience(t), there, func(ctx context.Context) error {
		ok(t, m.note(t, 1))
		<-ctx.Done() // The answer does not come.
		return ctx.Err()
	})
	ok(t, err)
	if !there(seen) {
		t.Fatal("it is not there")
	}
}

func TestWhoCannotWriteDoesNotWait(t *testing.T) {
	s := open(t)
	cache := follow(t, s)
	why := errors.New("no")
	never := func(*Snapshot) bool { return false }
	if _, err := cache.WaitWritten(patience(t), never, func(context.Context) error { return why }); !errors.Is(err, why) {
		t.Fatalf("%v, want %v", err, why)
	}
	ctx, cancel := context.WithCancel(patience(t))
	if _, err := cache.WaitWritten(ctx, never, func(context.Context) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want that it was cancelled", err)
	}
}
