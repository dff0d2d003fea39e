package ostropebble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"time"
)

// service is the name of a copy's calls.
const service = "Pebble"

// Serve lets front ends in other processes reach a copy, until the listener is closed. It
// neither authenticates nor encrypts: listen on a unix socket, or on a network that is yours alone.
func Serve(l net.Listener, c *Copy) error {
	s := rpc.NewServer()
	if err := s.RegisterName(service, &calls{c}); err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("pebble: accept: %w", err)
		}
		go s.ServeConn(conn)
	}
}

// calls are what a front end asks a copy.
type calls struct{ copy *Copy }

// Ask is what a front end wants: the database up to a position, within a time.
type Ask struct {
	UpTo    uint64
	Dir     string
	Timeout time.Duration
}

func (a Ask) context(c *Copy) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, a.Timeout)
}

// Persist is Copy's.
func (s *calls) Persist(a Ask, base *uint64) (err error) {
	ctx, cancel := a.context(s.copy)
	defer cancel()
	*base, err = s.copy.Persist(ctx, a.UpTo)
	return err
}

// Checkpoint is Copy's.
func (s *calls) Checkpoint(a Ask, _ *struct{}) error {
	ctx, cancel := a.context(s.copy)
	defer cancel()
	return s.copy.Checkpoint(ctx, a.UpTo, a.Dir)
}

// Remote is a copy in another process.
type Remote struct{ rpc *rpc.Client }

// Dial connects with a copy that is served.
func Dial(network, address string) (*Remote, error) {
	c, err := rpc.Dial(network, address)
	if err != nil {
		return nil, fmt.Errorf("pebble: reach a replica's copy: %w", err)
	}
	return &Remote{c}, nil
}

// longest is how long a replica goes on with what nobody may wait for any more.
const longest = 5 * time.Minute

// call waits for the answer, or until ctx is over.
func (r *Remote) call(ctx context.Context, method string, a Ask, reply any) error {
	a.Timeout = longest
	if end, ok := ctx.Deadline(); ok {
		a.Timeout = min(a.Timeout, time.Until(end))
	}
	call := r.rpc.Go(service+"."+method, a, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		return call.Error
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Persist is Follower's.
func (r *Remote) Persist(ctx context.Context, upTo uint64) (uint64, error) {
	base := new(uint64)
	if err := r.call(ctx, "Persist", Ask{UpTo: upTo}, base); err != nil {
		return 0, fmt.Errorf("pebble: ask a copy to persist: %w", err)
	}
	return *base, nil
}

// Checkpoint is Follower's. The directory is one of the replica's machine.
func (r *Remote) Checkpoint(ctx context.Context, upTo uint64, dir string) error {
	if err := r.call(ctx, "Checkpoint", Ask{UpTo: upTo, Dir: dir}, &struct{}{}); err != nil {
		return fmt.Errorf("pebble: ask a copy for a checkpoint: %w", err)
	}
	return nil
}

// Close ends the connection.
func (r *Remote) Close() error { return r.rpc.Close() }
