package meta

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	until "github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/internal/clock"
	"github.com/ostrodb/ostro/internal/port"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
)

// guarded is an etcd that wants passwords and can be started again.
type guarded struct {
	t      *testing.T
	config EmbeddedConfig
	now    *Embedded
	given  atomic.Int64 // tokens
}

// startGuarded starts one that gives tokens of a kind, as etcd's --auth-token has it.
func startGuarded(t *testing.T, kind string) *guarded {
	t.Helper()
	g := &guarded{t: t}
	count := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		resp, err := handle(ctx, req)
		if err == nil && info.FullMethod == pb.Auth_Authenticate_FullMethodName {
			g.given.Add(1)
		}
		return resp, err
	}
	g.config = EmbeddedConfig{Dir: t.TempDir(), Addr: port.For(t).Addr(), Log: quiet, adjust: func(ec *embed.Config) {
		ec.AuthToken, ec.BcryptCost = kind, 4
		ec.GRPCAdditionalServerOptions = append(ec.GRPCAdditionalServerOptions, grpc.ChainUnaryInterceptor(count))
	}}
	g.start()
	t.Cleanup(func() { g.now.Close() })
	open := openAt(t, g.config.Addr)
	requirePasswords(t, open.client)
	ok(t, open.Close())
	return g
}

func (g *guarded) start() {
	g.t.Helper()
	var err error
	g.now, err = StartEmbedded(patience(g.t), g.config)
	ok(g.t, err)
}

func (g *guarded) restart() {
	g.t.Helper()
	g.now.Close()
	g.start()
}

// open logs in, as a process of its own would.
func (g *guarded) open() *Store {
	g.t.Helper()
	c := Config{Endpoints: []string{g.config.Addr}, Cluster: "mine", Log: quiet, DialTimeout: until.Patience, User: "ostro", Password: "pw of ostro"}
	s, err := Open(patience(g.t), c)
	ok(g.t, err)
	g.t.Cleanup(func() { _ = s.Close() })
	return s
}

// jwt is the kind of tokens that an etcd which is started again knows.
func jwt(t *testing.T, more ...string) string {
	t.Helper()
	cert, key := certificate(t)
	return strings.Join(append([]string{"jwt,sign-method=ES256,pub-key=" + cert + ",priv-key=" + key}, more...), ",")
}

// A lease, watches, an election and requests of one process have one token, and so they do after each start of etcd: to give
// one is more work than all else.
func TestAProcessHasOneTokenForAllThatItAsks(t *testing.T) {
	for _, test := range []struct {
		name  string
		kind  string
		anew  int64 // tokens for each who comes back to an etcd that was started again
		times int
	}{{"simple", "simple", 1, 2}, {"JWT", jwt(t), 0, 1}} {
		t.Run(test.name, func(t *testing.T) {
			g := startGuarded(t, test.kind)
			first := g.open()
			configure(t, first, 20*time.Second)
			stores := []*Store{first, g.open()}
			members := []*Member{join(t, stores[0], "n1"), join(t, stores[1], "n2")}
			caches := []*Cache{follow(t, stores[0]), follow(t, stores[1])}
			campaign(t, members[0])
			if n := g.given.Load(); n != 2 {
				t.Fatalf("two processes were given %d tokens", n)
			}
			for round := range test.times {
				g.given.Store(0)
				g.restart()
				back := clock.SinceBoot()
				for _, m := range members {
					ok(t, m.SetCopies(patience(t), round+7))
					for _, c := range caches {
						await(t, c, "what was changed", func(s *Snapshot) bool { return s.Logs[m.Node.Log].Copies == round+7 })
					}
					renewed := func() bool { return m.Lease.deadline.Load() > int64(back+m.Lease.TTL()-margin(m.Lease.TTL())) }
					until.True(t, "the lease is renewed", renewed)
				}
				if n := g.given.Load(); n != test.anew*2 {
					t.Fatalf("start %d of etcd: two processes were given %d tokens, want %d each", round+1, n, test.anew)
				}
			}
		})
	}
}

func TestAWatchIsNotKeptFromBeginningByTheTokenOfItsStream(t *testing.T) {
	g := startGuarded(t, jwt(t, "ttl=1s"))
	s, other := g.open(), g.open()
	configure(t, s, until.Patience)
	follow(t, s) // begins the stream
	g.given.Store(0)
	until.True(t, "its token has expired", func() bool { read(t, s); return g.given.Load() > 0 })

	book := s.Book("a")
	ctx, cancel := context.WithCancel(patience(t))
	told := book.Changed()
	following := make(chan struct{})
	go func() { defer close(following); book.Follow(ctx) }()
	defer func() { cancel(); <-following }()
	hear(t, told) // It says so of each beginning.
	told = book.Changed()
	_, err := other.Book("a").Write(patience(t), Pages{}, map[string][]byte{"page": []byte("text")})
	ok(t, err)
	hear(t, told)
}

func hear(t *testing.T, told <-chan struct{}) {
	t.Helper()
	select {
	case <-told:
	case <-patience(t).Done():
		t.Fatal("nothing is heard")
	}
}

// Who has no password waits for no hash.
func TestACertificateIsEnoughForANodeWhoseNameItHas(t *testing.T) {
	cert, key := certificate(t)
	e := startSecure(t, cert, key)
	c, err := ParseURL(e.URL() + "/mine?ca=" + cert + "&cert=" + cert + "&key=" + key)
	ok(t, err)
	c.Log, c.DialTimeout = quiet, until.Patience
	first, err := Open(patience(t), c)
	ok(t, err)
	insist(t, func() error {
		_, err := first.client.UserAddWithOptions(patience(t), "ostro test", "", &clientv3.UserAddOptions{NoPassword: true})
		return err
	}, rpctypes.ErrUserAlreadyExist)
	insist(t, func() error { _, err := first.client.RoleAdd(patience(t), "ostro"); return err }, rpctypes.ErrRoleAlreadyExist)
	insist(t, func() error { _, err := first.client.UserGrantRole(patience(t), "ostro test", "ostro"); return err })
	requirePasswords(t, first.client)
	ok(t, first.Close())

	s, err := Open(patience(t), c)
	ok(t, err)
	defer s.Close()
	configure(t, s, 20*time.Second)
	m := join(t, s, "n1")
	granted := m.Lease.deadline.Load()
	until.True(t, "the lease is renewed", func() bool { return m.Lease.deadline.Load() > granted })
	follow(t, s)
	campaign(t, m)
}
