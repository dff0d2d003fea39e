package peer_test

import (
	"context"
	"net"
	"testing"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
)

// BenchmarkCalls is small calls in order, one at a time and many in flight.
func BenchmarkCalls(b *testing.B) {
	s := must(peer.NewServer(peer.ServerOptions{Node: "callee", Secret: secret}))(b)
	defer s.Close()
	s.HandleInOrder("append", func(context.Context, *peer.Call) (any, []byte, error) { return nil, nil, nil })
	l := must(net.Listen("tcp", "127.0.0.1:0"))(b)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.ServeConn(c)
		}
	}()
	p := must(peer.NewPool(peer.PoolOptions{Node: "caller", Secret: secret, Address: func(view.NodeID) (string, error) { return l.Addr().String(), nil }}))(b)
	defer p.Close()
	head, bulk := peer.Raw("twelve bytes"), make([]byte, 128)
	b.Run("one at a time", func(b *testing.B) {
		for b.Loop() {
			must(p.Call(b.Context(), "callee", "append", head, bulk, nil))(b)
		}
	})
	b.Run("64 in flight", func(b *testing.B) {
		room := make(chan struct{}, 64)
		for b.Loop() {
			room <- struct{}{}
			p.Go(b.Context(), "callee", "append", head, bulk, func(_, _ []byte, err error) {
				if err != nil {
					b.Error(err)
				}
				<-room
			})
		}
		for range cap(room) {
			room <- struct{}{}
		}
	})
}
