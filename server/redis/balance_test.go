package redis_test

import (
	"net"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
)

func TestASaturatedLoopGetsHelpOnlyWhileProcessorsAreIdle(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{})
	srv.AllowLoops(2)
	conns := connectAll(t, srv, 10)

	srv.PretendLoad(0.8, 2)
	wantLoops(t, srv, 1)
	srv.PretendLoad(1, 0.1)
	wantLoops(t, srv, 1)
	srv.PretendLoad(1, 1)
	wantLoops(t, srv, 2)
	await.True(t, "half of the connections are there", func() bool {
		m := srv.Metrics()
		return m.Loops[0].Clients == 5 && m.Loops[1].Clients == 5
	})
	pingAll(t, conns)

	srv.AllowLoops(2)
	srv.PretendLoad(1, 1)
	wantLoops(t, srv, 2)
}

func TestALoopWithHeavyCommandsGetsHelpForLessOfACore(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{})
	srv.AllowLoops(2)
	conns := connectAll(t, srv, 10)
	srv.PretendLoad(1, 0.3)
	wantLoops(t, srv, 1)
	srv.PretendHeavyLoad(1, 0.1)
	wantLoops(t, srv, 1)
	srv.PretendHeavyLoad(1, 0.3)
	wantLoops(t, srv, 2)
	pingAll(t, conns)
}

func TestALoopThatIsNotNeededGivesItsConnectionsBack(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{})
	srv.AllowLoops(2)
	conns := connectAll(t, srv, 10)
	srv.PretendLoad(1, 1)
	wantLoops(t, srv, 2)
	pingAll(t, conns)

	await.True(t, "one loop is enough", func() bool { // A window of real work may end meanwhile.
		srv.PretendCalm()
		return srv.Metrics().ActiveLoops == 1
	})
	await.True(t, "all connections are back", func() bool {
		pingAll(t, conns)
		return srv.Metrics().Loops[0].Clients == 10
	})

	srv.PretendLoad(1, 1) // the loop that is there already is used again
	wantLoops(t, srv, 2)
	if n := len(srv.Metrics().Loops); n != 2 {
		t.Fatalf("%d loops", n)
	}
	pingAll(t, conns)
}

func TestAFixedNumberOfLoopsSharesConnections(t *testing.T) {
	srv := startServer(t, store.Options{}, redis.Config{Loops: 3})
	pingAll(t, connectAll(t, srv, 9))
	for i, l := range srv.Metrics().Loops {
		if l.Clients != 3 {
			t.Errorf("loop %d has %d connections", i, l.Clients)
		}
	}
}

func connectAll(t *testing.T, srv *redis.Server, n int) (conns []net.Conn) {
	t.Helper()
	for range n {
		c := dial(t, "tcp", srv.Addr().String())
		conns = append(conns, c)
		pingAll(t, []net.Conn{c})
	}
	return conns
}

func pingAll(t *testing.T, conns []net.Conn) {
	t.Helper()
	for _, c := range conns {
		sendTo(t, c, bulk("PING"))
		expect(t, c, "+PONG\r\n")
	}
}

func wantLoops(t *testing.T, srv *redis.Server, n int) {
	t.Helper()
	if got := srv.Metrics().ActiveLoops; got != n {
		t.Fatalf("%d loops are active, want %d", got, n)
	}
}
