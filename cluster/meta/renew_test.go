package meta

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// answerer is etcd's side of them. An answer's time to live is the number of its question, over all streams.
type answerer struct {
	pb.UnimplementedLeaseServer
	asked   chan int64 // by which stream
	answers chan struct{}
	streams atomic.Int64
	number  atomic.Int64
}

func (r *answerer) LeaseKeepAlive(s pb.Lease_LeaseKeepAliveServer) error {
	stream := r.streams.Add(1)
	for {
		req, err := s.Recv()
		if err != nil {
			return err
		}
		number := r.number.Add(1)
		r.asked <- stream
		<-r.answers
		if err := s.Send(&pb.LeaseKeepAliveResponse{ID: req.ID, Header: &pb.ResponseHeader{}, TTL: number}); err != nil {
			return err
		}
	}
}

func startAnswerer(t *testing.T) (*answerer, *leases) {
	t.Helper()
	r := &answerer{asked: make(chan int64, 10), answers: make(chan struct{}, 10)}
	server := grpc.NewServer()
	pb.RegisterLeaseServer(server, r)
	at, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	go func() { _ = server.Serve(at) }()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{at.Addr().String()}, Logger: zapTo(quiet)})
	ok(t, err)
	l := &leases{Client: client}
	t.Cleanup(func() {
		l.hangUp()
		_ = client.Close()
		server.Stop()
	})
	return r, l
}

func TestRenewalsShareAStream(t *testing.T) {
	r, l := startAnswerer(t)
	for n := range int64(5) {
		r.answers <- struct{}{}
		resp, err := l.KeepAliveOnce(patience(t), 1)
		ok(t, err)
		if stream := <-r.asked; resp.TTL != n+1 || stream != 1 {
			t.Fatalf("question %d, by stream %d, got the answer to %d", n+1, stream, resp.TTL)
		}
	}
}

func TestALateAnswerToARenewalIsNotTakenForTheNext(t *testing.T) {
	r, l := startAnswerer(t)
	ctx, cancel := context.WithCancel(patience(t))
	go func() {
		<-r.asked
		cancel()
	}()
	if _, err := l.KeepAliveOnce(ctx, 1); err == nil {
		t.Fatal("an answer that nobody gave")
	}
	r.answers <- struct{}{} // to the first, late
	r.answers <- struct{}{}
	resp, err := l.KeepAliveOnce(patience(t), 1)
	ok(t, err)
	if stream := <-r.asked; resp.TTL != 2 || stream != 2 {
		t.Fatalf("question 2, by stream %d, got the answer to %d", stream, resp.TTL)
	}
}
