package meta

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	until "github.com/ostrodb/ostro/internal/await"
)

// roleVariable makes this binary another process of a test instead of a test.
const roleVariable = "OSTRO_META_TEST_ROLE"

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// shared is the etcd of all tests that do not harm it. Each has a cluster of its own there.
var shared *Embedded

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		childMain(os.Args[1:])
		os.Exit(0)
	}
	os.Exit(until.RunToEnd(withEtcd{m}))
}

type withEtcd struct{ *testing.M }

func (m withEtcd) Run() int {
	roomTimeout = time.Minute // Machines are slow.
	dir, err := os.MkdirTemp("", "ostro-meta-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if shared, err = StartEmbedded(context.Background(), EmbeddedConfig{Dir: dir, Log: quiet}); err != nil {
		panic(err)
	}
	code := m.M.Run()
	shared.Close()
	return code
}

func clusterOf(t *testing.T) string {
	name := strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())
	return name[max(0, len(name)-60):]
}

// patience is how long a test waits for what must come, on a machine that may be very slow.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func openAt(t *testing.T, addr string) *Store {
	t.Helper()
	s, err := Open(patience(t), Config{Endpoints: []string{addr}, Cluster: clusterOf(t), Log: quiet, DialTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// short is a lease that a test sees the end of, and yet long enough to join by on a busy machine.
const short = 5 * time.Second

// open is a fresh cluster with leases that last for a whole test, unless it says otherwise.
func open(t *testing.T, lease ...time.Duration) *Store {
	t.Helper()
	s := openAt(t, shared.Addr())
	configure(t, s, append(lease, time.Minute)[0])
	return s
}

func configure(t *testing.T, s *Store, lease time.Duration) {
	t.Helper()
	settings := DefaultSettings()
	settings.LeaseMillis = int(lease.Milliseconds())
	if _, err := s.Configure(patience(t), settings); err != nil {
		t.Fatal(err)
	}
}

// relax gives those who join from now on leases that last.
func relax(t *testing.T, s *Store) {
	t.Helper()
	_, err := s.client.Delete(patience(t), s.prefix+keySettings)
	ok(t, err)
	configure(t, s, time.Minute)
}

func nodeNamed(id view.NodeID) Node {
	var log record.LogID
	for _, c := range []byte(id) {
		log = log<<8 | record.LogID(c)
	}
	return Node{ID: id, Address: "127.0.0.1:7000", Zone: "z", CapacityBytes: 1 << 30, Log: log}
}

func join(t *testing.T, s *Store, id view.NodeID) *Member {
	t.Helper()
	m, err := s.Join(patience(t), nodeNamed(id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = m.Lease.Close(ctx)
	})
	return m
}

func campaign(t *testing.T, m *Member) *Term {
	t.Helper()
	term, err := m.Campaign(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(term.session.Orphan)
	return term
}

func follow(t *testing.T, s *Store) *Cache {
	t.Helper()
	c, err := s.Follow(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func read(t *testing.T, s *Store) *Snapshot {
	t.Helper()
	snapshot, err := s.Read(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func await(t *testing.T, c *Cache, what string, enough func(*Snapshot) bool) *Snapshot {
	t.Helper()
	s, err := c.Wait(patience(t), enough)
	if err != nil {
		t.Fatalf("waited in vain for %s: %v", what, err)
	}
	return s
}

// kill ends a node's lease in etcd, as if the node had been silent for long.
func kill(t *testing.T, m *Member) {
	t.Helper()
	if _, err := m.store.client.Revoke(patience(t), m.Lease.id); err != nil {
		t.Fatal(err)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, sentence string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), sentence) {
		t.Fatalf("want an error that says %q, got %v", sentence, err)
	}
}

// three is a cluster of n1, n2 and n3 that share the space, with n1 as its coordinator.
func three(t *testing.T) (*Store, []*Member, *Term) {
	t.Helper()
	s := open(t)
	var members []*Member
	for i := range 3 {
		members = append(members, join(t, s, view.NodeID(fmt.Sprint("n", i+1))))
	}
	term := campaign(t, members[0])
	ok(t, term.Begin(patience(t), "n1", "n2", "n3"))
	return s, members, term
}
