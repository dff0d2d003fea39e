package migrate

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// etcdOf is a cluster in etcd whose source owns everything.
func etcdOf(t *testing.T) (cluster *meta.Store, source, target *meta.Member, term *meta.Term) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	etcd, err := meta.StartEmbedded(ctx, meta.EmbeddedConfig{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	check(t, err)
	t.Cleanup(etcd.Close)
	cluster, err = meta.Open(ctx, meta.Config{Endpoints: []string{etcd.Addr()}, Cluster: "begin", Log: slog.New(slog.DiscardHandler), DialTimeout: time.Minute})
	check(t, err)
	t.Cleanup(func() { _ = cluster.Close() })
	settings := meta.DefaultSettings()
	settings.LeaseMillis = int(time.Minute.Milliseconds())
	_, err = cluster.Configure(ctx, settings)
	check(t, err)
	join := func(n view.NodeID, log record.LogID) *meta.Member {
		m, err := cluster.Join(ctx, meta.Node{ID: n, Address: "by pipe", CapacityBytes: 1 << 30, Log: log})
		check(t, err)
		t.Cleanup(func() {
			closing, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = m.Lease.Close(closing)
		})
		return m
	}
	source, target = join("source", 1), join("target", 2)
	term, err = source.Campaign(ctx)
	check(t, err)
	check(t, term.Begin(ctx, "source"))
	return cluster, source, target, term
}

// giver is a source that gives away what etcd lets it.
type giver struct {
	given
	member *meta.Member
	asked  *atomic.Int64
}

func (g giver) Yield(ctx context.Context, id ID, _ view.NodeID, asked meta.Asked) (meta.Migration, time.Time, error) {
	g.asked.Add(1)
	m, err := g.member.Move(ctx, id, asked)
	return m, time.Now(), err
}

// What a migration waits for in the queue can change again before its source writes that it begins.
func TestAMigrationThatCannotBeginAnyMoreIsGivenUpWithTheReason(t *testing.T) {
	cluster, source, target, term := etcdOf(t)
	want, err := cluster.Migrate(t.Context(), meta.MigrationRequest{Source: "source", Target: "target", Ranges: view.RangesOf(view.SlotsRange(0, 99))})
	check(t, err)
	cache, err := cluster.Follow(t.Context())
	check(t, err)
	t.Cleanup(cache.Close)
	var asked atomic.Int64
	m := moveApart(t, filled(t, 10), func(s *Source, to *peer.Server) {
		NewSource(giver{s.origin.(given), source, &asked}).Handle(to)
	}, (*peer.Server).ServeConn)
	m.id, m.ranges, m.want = want.ID, want.Ranges, want
	m.o.Cache, m.o.Member = cache, func() (*meta.Member, error) { return target, nil }
	m.enter(yielding) // It could begin a moment ago.
	check(t, term.MarkDraining(t.Context(), "target", true))
	_, err = cache.Wait(t.Context(), func(s *meta.Snapshot) bool { return s.Draining("target") })
	check(t, err)
	for m.at != over && asked.Load() < 5 {
		m.once(t.Context())
	}
	got, err := cluster.Read(t.Context())
	check(t, err)
	if end := got.Migrations[want.ID]; m.at != over || end.Stage != meta.Failed || !strings.Contains(end.Why, "target is being drained") {
		t.Errorf("after the source was asked %d times the target is %s, and the migration %s: %s", asked.Load(), m.at, end.Stage, end.Why)
	}
}

func TestAMigrationThatMustWaitAgainIsQueuedAndItsSourceNotAsked(t *testing.T) {
	m := moveApart(t, filled(t, 10), func(*Source, *peer.Server) {}, func(_ *peer.Server, c net.Conn) {
		t.Error("the source was asked")
		_ = c.Close()
	})
	want := m.want
	want.Stage = meta.Wanted
	m.o.Cache = &unchanging{meta.Snapshot{Migrations: map[uint64]meta.Migration{m.id: want}}} // Nobody is alive.
	m.enter(yielding)
	if m.once(t.Context()); m.at != queued {
		t.Errorf("it is %s", m.at)
	}
}

// wantedMove is a migration that is wanted and has left the queue, with a target that is not patient at all.
func wantedMove(t *testing.T, handle func(*Source, *peer.Server), connect func(*peer.Server, net.Conn)) (*move, *meta.Store) {
	t.Helper()
	cluster, _, target, _ := etcdOf(t)
	want, err := cluster.Migrate(t.Context(), meta.MigrationRequest{Source: "source", Target: "target", Ranges: view.RangesOf(view.SlotsRange(0, 99))})
	check(t, err)
	cache, err := cluster.Follow(t.Context())
	check(t, err)
	t.Cleanup(cache.Close)
	m := moveApart(t, filled(t, 10), handle, connect)
	m.id, m.ranges, m.want = want.ID, want.Ranges, want
	m.o.Cache, m.o.Member = cache, func() (*meta.Member, error) { return target, nil }
	m.o.Patience = time.Nanosecond
	m.enter(yielding)
	return m, cluster
}

func TestAMigrationWhoseSourceDoesNotAnswerItsTargetFailsWithTheReason(t *testing.T) {
	m, cluster := wantedMove(t, func(*Source, *peer.Server) {}, func(_ *peer.Server, c net.Conn) { _ = c.Close() })
	for tries := 0; m.at != over && tries < 5; tries++ {
		m.once(t.Context())
	}
	got, err := cluster.Read(t.Context())
	check(t, err)
	if end := got.Migrations[m.id]; m.at != over || end.Stage != meta.Failed || !strings.Contains(end.Why, "source does not answer target") {
		t.Errorf("the target is %s, and the migration %s: %s", m.at, end.Stage, end.Why)
	}
}

// refusing is a source that lives and cannot give anything away yet.
type refusing struct{ given }

func (refusing) Yield(context.Context, ID, view.NodeID, meta.Asked) (meta.Migration, time.Time, error) {
	return meta.Migration{}, time.Time{}, errors.New("the node is starting")
}

func TestAMigrationWhoseSourceRefusesItWaitsAndSaysWhy(t *testing.T) {
	m, cluster := wantedMove(t, func(s *Source, to *peer.Server) { NewSource(refusing{s.origin.(given)}).Handle(to) }, (*peer.Server).ServeConn)
	for range 5 {
		m.once(t.Context())
	}
	got, err := cluster.Read(t.Context())
	check(t, err)
	if now := got.Migrations[m.id]; m.at == over || now.Stage != meta.Wanted {
		t.Errorf("the target is %s, and the migration %s: %s", m.at, now.Stage, now.Why)
	}
	if why := m.progress().Waiting; !strings.Contains(why, "the node is starting") {
		t.Errorf("it waits because %q", why)
	}
}

func TestTimeInTheQueueIsNoSilenceOfTheSource(t *testing.T) {
	m, _ := wantedMove(t, func(*Source, *peer.Server) {}, func(_ *peer.Server, c net.Conn) { _ = c.Close() })
	m.once(t.Context()) // It fails.
	m.enter(queued)
	m.once(t.Context())
	if m.silence != (silence{}) || m.at == queued {
		t.Errorf("it is %s, and silence counts since %s", m.at, m.silence.since)
	}
}

// The answer to a return can be lost though etcd has written it. While the source replays there is nothing to be written again.
func TestAReturnWhoseAnswerWasLostIsNotWrittenAgain(t *testing.T) {
	m := moveApart(t, filled(t, 10), func(s *Source, to *peer.Server) { s.Handle(to) }, (*peer.Server).ServeConn)
	back := m.want
	back.Stage = meta.Returning
	m.o.Cache = &unchanging{meta.Snapshot{Migrations: map[uint64]meta.Migration{m.id: back}}}
	m.o.Member = func() (*meta.Member, error) { return nil, errors.New("etcd was asked") }
	m.enter(returning)
	if m.once(t.Context()); m.at != over {
		t.Errorf("it is %s", m.at)
	}
}
