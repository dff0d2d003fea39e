package peer_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
)

// network is a proxy that can lose everything that its connections carry.
type network struct {
	l    net.Listener
	wait sync.WaitGroup

	mu    sync.Mutex
	gone  chan struct{} // closed when the present connections carry nothing any more
	conns []net.Conn
}

func between(t *testing.T, addr string) *network {
	t.Helper()
	n := &network{l: must(net.Listen("tcp", "127.0.0.1:0"))(t), gone: make(chan struct{})}
	n.wait.Go(func() {
		for {
			c, err := n.l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", addr)
			if err != nil {
				_ = c.Close()
				continue
			}
			n.mu.Lock()
			gone := n.gone
			n.conns = append(n.conns, c, to)
			n.mu.Unlock()
			n.wait.Go(func() { carry(to, c, gone) })
			n.wait.Go(func() { carry(c, to, gone) })
		}
	})
	t.Cleanup(func() {
		_ = n.l.Close()
		n.mu.Lock()
		for _, c := range n.conns {
			_ = c.Close()
		}
		n.mu.Unlock()
		n.wait.Wait()
	})
	return n
}

func carry(to, from net.Conn, gone chan struct{}) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		select {
		case <-gone: // It goes nowhere, and the end of the connection neither.
			if err != nil {
				return
			}
			continue
		default:
		}
		if n > 0 {
			_, err = to.Write(b[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

// split loses what the present connections carry from now on; new ones work.
func (n *network) split() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.gone)
	n.gone = make(chan struct{})
}

func TestAConnectionThatCarriesNothingIsReplaced(t *testing.T) {
	net := between(t, listen(t, "127.0.0.1:0", withEcho).addr())
	p := pool(t, net.l.Addr().String())
	must(p.Call(ctx(t), "callee", "echo", question{}, nil, nil))(t)
	net.split()
	for lost := 0; ; lost++ {
		c, cancel := context.WithTimeout(ctx(t), 300*time.Millisecond)
		_, err := p.Call(c, "callee", "echo", question{}, nil, nil)
		cancel()
		if err != nil {
			continue
		}
		if lost == 0 {
			t.Fatal("the network lost nothing")
		}
		return
	}
}

func TestAPeerThatIsOnlySlowKeepsItsConnection(t *testing.T) {
	release := make(chan struct{})
	s := listen(t, "127.0.0.1:0", func(s *peer.Server) {
		s.Handle("slow", func(context.Context, *peer.Call) (any, []byte, error) {
			<-release
			return nil, nil, nil
		})
	})
	p := pool(t, s.addr())
	ended := make(chan error, 1)
	go func() {
		_, err := p.Call(ctx(t), "callee", "slow", nil, nil, nil)
		ended <- err
	}()
	for range 8 { // Each of them asks whether the peer is there.
		c, cancel := context.WithTimeout(ctx(t), 200*time.Millisecond)
		if _, err := p.Call(c, "callee", "slow", nil, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		cancel()
	}
	close(release)
	check(t, <-ended)
}

func TestAStreamWhoseSourceFallsSilentIsLost(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	s := listen(t, "127.0.0.1:0", func(s *peer.Server) {
		s.Handle("stuck", func(ctx context.Context, c *peer.Call) (any, []byte, error) {
			if err := c.Send(nil, []byte("first")); err != nil {
				return nil, nil, err
			}
			<-ctx.Done()
			return nil, nil, io.ErrUnexpectedEOF
		})
	})
	st := must(pool(t, s.addr()).Stream(ctx(t), "callee", "stuck", nil))(t)
	defer st.Close()
	if b, _, err := st.Next(nil); err != nil || string(b) != "first" {
		t.Fatalf("%q, %v", b, err)
	}
	st.Stall(50 * time.Millisecond)
	if _, _, err := st.Next(nil); !errors.Is(err, peer.ErrLost) {
		t.Fatalf("got %v", err)
	}
}
