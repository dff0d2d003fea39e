package group

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/ostrodb/ostro/fabric/frame"
)

// DialOptions are what the URL of Dial does not say.
type DialOptions struct {
	Name   string // of the client, for the replica's log
	Secret []byte // for tcp; ?secret-file=PATH in the URL wins
}

// Remote is a replica of another process, as a Member. Its calls go over a control
// connection, one at a time. A connection that ended is made anew by the next call.
type Remote struct {
	url   string
	name  string
	at    place
	calls sync.Mutex

	mu     sync.Mutex
	conn   net.Conn // nil if there is none
	closed bool
}

var _ Member = (*Remote)(nil)

// Dial connects with the replica that serves at a URL: unix:///path or
// tcp://host:port?secret-file=PATH.
func Dial(ctx context.Context, url string, o DialOptions) (*Remote, error) {
	at, err := parsePlace(url, o.Secret)
	if err != nil {
		return nil, err
	}
	r := &Remote{url: url, name: o.Name, at: at}
	if _, err := r.connected(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// Offer asks the replica to prepare for a group.
func (r *Remote) Offer(ctx context.Context, s Spec) (Offer, error) {
	a, err := r.call(ctx, controlRequest{Verb: askOffer, Spec: &s})
	if err != nil {
		return Offer{}, err
	}
	if a.Offer == nil {
		return Offer{}, fmt.Errorf("%w: no offer came", errMalformed)
	}
	return *a.Offer, nil
}

// Join makes the replica part of the group that it made an offer for.
func (r *Remote) Join(ctx context.Context, j Join) error {
	_, err := r.call(ctx, controlRequest{Verb: askJoin, Join: &j})
	return err
}

// Leave makes the replica let go of its group, whoever's it is. When it returns,
// nothing lands in the replica's memory any more.
func (r *Remote) Leave(ctx context.Context) error {
	_, err := r.call(ctx, controlRequest{Verb: askLeave})
	return err
}

// Health asks how the replica is.
func (r *Remote) Health(ctx context.Context) (Health, error) {
	a, err := r.call(ctx, controlRequest{Verb: askHealth})
	if err != nil {
		return Health{}, err
	}
	if a.Health == nil {
		return Health{}, fmt.Errorf("%w: no health came", errMalformed)
	}
	return *a.Health, nil
}

// Close ends the connection, and a call that is under way. An offer that was not
// joined is withdrawn; a group goes on.
func (r *Remote) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.conn == nil {
		return nil
	}
	err := r.conn.Close()
	r.conn = nil
	return err
}

// call sends a request and waits for the answer. Whatever goes wrong on the way
// ends the connection, for the two sides might disagree on what comes next.
func (r *Remote) call(ctx context.Context, q controlRequest) (controlAnswer, error) {
	r.calls.Lock()
	defer r.calls.Unlock()
	c, err := r.connected(ctx)
	if err != nil {
		return controlAnswer{}, err
	}
	var a controlAnswer
	stop := interrupt(ctx, c)
	err = writeControl(c, q)
	if err == nil {
		err = readControl(c, &a, func() {})
	}
	if !stop() || err != nil {
		r.drop(c)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return a, fmt.Errorf("group: ask the replica at %s to %s: %w", r.url, q.Verb, err)
	}
	return a, a.err()
}

// interrupt ends what c does when ctx is over. What it returns tells whether
// that has not happened, and sees to it that it will not.
func interrupt(ctx context.Context, c net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}

func (r *Remote) drop(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = c.Close()
	if r.conn == c {
		r.conn = nil
	}
}

// connected is the connection, made if there is none. Calls come one at a time.
func (r *Remote) connected(ctx context.Context) (net.Conn, error) {
	r.mu.Lock()
	c, closed := r.conn, r.closed
	r.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	if c != nil {
		return c, nil
	}
	c, err := r.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("group: reach the replica at %s: %w", r.url, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = c.Close()
		return nil, ErrClosed
	}
	r.conn = c
	return c, nil
}

func (r *Remote) connect(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, r.at.network, r.at.addr)
	if err != nil {
		return nil, err
	}
	hello, err := json.Marshal(greeting{r.name})
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(controlTimeout))
	stop := interrupt(ctx, c)
	if err = frame.Introduce(c, controlMagic, r.at.secret, hello); err == nil {
		err = frame.Answered(c)
	}
	if !stop() {
		err = ctx.Err()
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}
