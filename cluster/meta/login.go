package meta

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// login tells etcd who we are, by one token for all that a process asks of it. etcd hashes the password for each token that
// it gives, 70 ms of a processor, and one that was started again knows none of those before, unless they are JWTs. Its own
// client asks for a token for every stream that it opens and for every request that is refused: then a cluster that comes
// back keeps etcd busy for longer than its leases last.
//
// Invariant: a process asks for one token at a time, and never again goes by one that was refused.
type login struct {
	user, password string
	probe          string // a key that may be asked for, there or not

	mu     sync.Mutex
	now    *token // nil: none yet, or it was refused
	asking *asking
}

// token is what etcd knows us by; empty while it wants no passwords.
type token struct{ text string }

// asking is who wait for the same token.
type asking struct {
	done  chan struct{}
	token *token
	err   error
}

// loginTimeout is how long a token is waited for, until somebody asks again.
const loginTimeout = 10 * time.Second

func (l *login) options() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(l.call), grpc.WithChainStreamInterceptor(l.open)}
}

func (t *token) on(ctx context.Context) context.Context {
	if t.text == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, t.text)
}

// get returns a token other than one that was refused, if there was one. All who come while etcd is asked wait for that
// answer, and who gives up does not have the next one begin anew: etcd hashes on all the same.
func (l *login) get(ctx context.Context, cc *grpc.ClientConn, refused *token) (*token, error) {
	l.refuse(refused)
	l.mu.Lock()
	now, a := l.now, l.asking
	if now == nil && a == nil {
		a = &asking{done: make(chan struct{})}
		l.asking = a
		go l.ask(cc, a)
	}
	l.mu.Unlock()
	if now != nil {
		return now, nil
	}
	select {
	case <-a.done:
		return a.token, a.err
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// refuse forgets a token that etcd refused, unless there is another by now.
func (l *login) refuse(t *token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t != nil && l.now == t {
		l.now = nil
	}
}

// ask ends with the connection, or when etcd is away for long.
func (l *login) ask(cc *grpc.ClientConn, a *asking) {
	ctx, cancel := context.WithTimeout(context.Background(), loginTimeout)
	defer cancel()
	resp, err := pb.NewAuthClient(cc).Authenticate(ctx, &pb.AuthenticateRequest{Name: l.user, Password: l.password}, grpc.WaitForReady(true))
	switch {
	case err == nil:
		a.token = &token{resp.Token}
	case errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled):
		a.token = &token{}
	default:
		a.err = err
	}
	l.mu.Lock()
	l.now, l.asking = a.token, nil
	l.mu.Unlock()
	close(a.done)
}

// call is a request with the token. One that was refused for it was not executed, and is sent again with another.
func (l *login) call(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if method == pb.Auth_Authenticate_FullMethodName {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	used, err := l.get(ctx, cc, nil)
	if err != nil {
		return err
	}
	if err = invoke(used.on(ctx), method, req, reply, cc, opts...); !isRefusal(err) {
		return err
	}
	if used, err = l.get(ctx, cc, used); err != nil {
		return err
	}
	return invoke(used.on(ctx), method, req, reply, cc, opts...)
}

// open begins a stream. It keeps the token that it began with, so a request finds out first whether etcd still takes it.
func (l *login) open(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, begin grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	question := &pb.RangeRequest{Key: []byte(l.probe), CountOnly: true, Serializable: true}
	_, err := pb.NewKVClient(cc).Range(ctx, question, grpc.WaitForReady(true))
	if err != nil && !errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied) {
		return nil, err
	}
	used, err := l.get(ctx, cc, nil)
	if err != nil {
		return nil, err
	}
	stream, err := begin(used.on(ctx), desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &authenticated{stream, l, used}, nil
}

// authenticated is a stream that notices when etcd no longer takes its token.
type authenticated struct {
	grpc.ClientStream
	login *login
	used  *token
}

// RecvMsg makes the refusal of a new watch the end of the stream, in the way that has etcd's client open another one, with
// another token, for all its watches: it would try this one for good.
func (s *authenticated) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if w, is := m.(*pb.WatchResponse); is && err == nil && w.Canceled && slices.Contains(refusals, w.CancelReason) {
		s.login.refuse(s.used)
		return status.Error(codes.Unavailable, w.CancelReason)
	}
	if isRefusal(err) {
		s.login.refuse(s.used)
	}
	return err
}

// isRefusal tells whether etcd did not do something for want of a token that it knows.
func isRefusal(err error) bool {
	return err != nil && slices.Contains(refusals, err.Error())
}

var refusals = []string{
	rpctypes.ErrGRPCInvalidAuthToken.Error(), rpctypes.ErrGRPCAuthOldRevision.Error(), rpctypes.ErrGRPCUserEmpty.Error(),
}
