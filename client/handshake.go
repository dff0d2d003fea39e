package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ostrodb/ostro/wire"
)

// greeting is what a server says first.
type greeting struct {
	conn    net.Conn
	welcome wire.Welcome
	routes  *routes
	rest    []byte // received behind it
}

// open connects to a server and introduces a worker. The connection is closed when ctx
// ends before it is over.
func (c *Client) open(ctx context.Context, address string, id uint64) (*greeting, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.SessionTimeout)
	defer cancel()
	conn, err := c.opts.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	if c.opts.TLS != nil {
		conn = tls.Client(conn, tlsFor(c.opts.TLS, address))
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	g, err := c.greet(conn, address, id)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("open a session with %s: %w", address, err)
	}
	return g, nil
}

func tlsFor(config *tls.Config, address string) *tls.Config {
	if config.ServerName != "" {
		return config
	}
	config = config.Clone()
	config.ServerName, _, _ = net.SplitHostPort(address) // It was checked before.
	return config
}

func (c *Client) greet(conn net.Conn, address string, id uint64) (*greeting, error) {
	hello := wire.AppendHello([]byte(wire.Magic), &wire.Hello{Version: wire.Version, Client: id, User: []byte(c.opts.User), Secret: []byte(c.opts.Password)})
	if _, err := conn.Write(hello); err != nil {
		return nil, err
	}
	in := &input{conn: conn}
	g := &greeting{conn: conn}
	body, err := in.expect(wire.TypeWelcome)
	if err != nil {
		return nil, err
	}
	if g.welcome, err = wire.DecodeWelcome(body); err != nil {
		return nil, err
	}
	g.welcome.Node = nil // It is the input's.
	if body, err = in.expect(wire.TypeMap); err != nil {
		return nil, err
	}
	m, err := wire.DecodeMap(body)
	if err != nil {
		return nil, err
	}
	g.routes, g.rest = routesOf(m, address), in.b[in.start:]
	c.firstTable.Store(g.welcome.FirstTable)
	c.lease.Store(min(c.lease.Load(), int64(g.welcome.LeaseMillis)))
	return g, nil
}

// permanent tells whether trying again cannot help.
func permanent(err error) bool {
	var bye *wire.Goodbye
	return errors.As(err, &bye) && (bye.Reason == wire.ReasonDenied || bye.Reason == wire.ReasonVersion)
}

// input is a connection's frames.
type input struct {
	conn  net.Conn
	b     []byte
	start int
}

const inputBytes = 64 << 10

// next returns the next frame, which is valid until the call after. heard is called
// whenever something arrives.
func (in *input) next(heard func()) (wire.Type, []byte, error) {
	for {
		t, body, n, need, err := wire.Next(in.b[in.start:], wire.MaxFrameBytes)
		if err != nil {
			return 0, nil, err
		}
		if n > 0 {
			in.start += n
			return t, body, nil
		}
		if err := in.read(need); err != nil {
			return 0, nil, err
		}
		if heard != nil {
			heard()
		}
	}
}

func (in *input) read(need int) error {
	left := len(in.b) - in.start
	switch {
	case left == 0 && cap(in.b) > 4*inputBytes:
		in.b, in.start = nil, 0
	case in.start > 0:
		copy(in.b, in.b[in.start:])
		in.b, in.start = in.b[:left], 0
	}
	if cap(in.b)-left < inputBytes/4 {
		grown := make([]byte, left, max(inputBytes, min(2*cap(in.b), need+inputBytes/4)))
		copy(grown, in.b)
		in.b = grown
	}
	n, err := in.conn.Read(in.b[left:cap(in.b)])
	in.b = in.b[:left+n]
	if n > 0 {
		return nil
	}
	return err
}

// expect reads a frame of one type; a goodbye is the error that it is.
func (in *input) expect(want wire.Type) ([]byte, error) {
	t, body, err := in.next(nil)
	switch {
	case err != nil:
		return nil, err
	case t == wire.TypeGoodbye:
		bye, err := wire.DecodeGoodbye(body)
		if err != nil {
			return nil, err
		}
		return nil, bye
	case t != want:
		return nil, fmt.Errorf("the server sent a %s frame where a %s was due: is this a native port?", t, want)
	}
	return body, nil
}
