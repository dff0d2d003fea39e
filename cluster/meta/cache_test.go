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
)

func TestAWatcherResumesAfterCompaction(t *testing.T) {
	direct := open(t)
	m := join(t, direct, "n1")
	p := proxyTo(t, shared.Addr())
	cache := follow(t, openAt(t, p.addr()))
	p.cut()
	for i := range 5 {
		_, err := m.CreateTable(patience(t), fmt.Sprint("t", i))
		ok(t, err)
	}
	ok(t, m.DropTable(patience(t), 1))
	_, err := direct.client.Compact(patience(t), read(t, direct).Revision)
	ok(t, err)
	if n := len(cache.Snapshot().Tables); n != 0 {
		t.Fatalf("cut off, it knows %d tables", n)
	}
	p.mend()
	await(t, cache, "the tables", func(s *Snapshot) bool { return len(s.Tables) == 4 })
	_, err = m.CreateTable(patience(t), "later")
	ok(t, err)
	await(t, cache, "a later table", func(s *Snapshot) bool { return len(s.Tables) == 5 })
}

func TestAWatcherSeesEveryDeletion(t *testing.T) {
	s := open(t)
	m, cache := join(t, s, "n1"), follow(t, s)
	for i := range 5 {
		table, err := m.CreateTable(patience(t), fmt.Sprint("t", i))
		ok(t, err)
		await(t, cache, "the table", func(s *Snapshot) bool { return len(s.Tables) == 1 })
		ok(t, m.DropTable(patience(t), table.ID))
		await(t, cache, "its end", func(s *Snapshot) bool { return len(s.Tables) == 0 })
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
	_, err = term.CreateTable(patience(t), "after")
	ok(t, err)
	await(t, cache, "the table", func(s *Snapshot) bool { return len(s.Tables) == 1 && s.Coordinator == "n1" })
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
	there := func(s *Snapshot) bool { return len(s.Tables) == 1 }
	seen, err := cache.WaitWritten(patience(t), there, func(ctx context.Context) error {
		_, err := m.CreateTable(patience(t), "t")
		ok(t, err)
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
