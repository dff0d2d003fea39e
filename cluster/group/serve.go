package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/fabric/frame"
)

// ServeOptions are what the URL of Serve does not say.
type ServeOptions struct {
	Secret []byte // for tcp; ?secret-file=PATH in the URL wins
	Log    *slog.Logger
}

// Server lets clients of other processes make a replica part of their groups.
type Server struct {
	replica *Replica
	door    *frame.Door
	secret  []byte
	log     *slog.Logger

	calls, refused, malformed, unauthorized atomic.Uint64
}

const (
	maxClients = 64
	// A stranger, and a message that has begun, get so much time.
	controlTimeout = 5 * time.Second
)

// Serve listens at a URL, unix:///path or tcp://host:port?secret-file=PATH, and
// does for a replica what clients ask. The replica and its memory stay the caller's.
func Serve(url string, r *Replica, o ServeOptions) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	at, err := parsePlace(url, o.Secret)
	if err != nil {
		return nil, err
	}
	l, err := at.listen()
	if err != nil {
		return nil, fmt.Errorf("group: %w", err)
	}
	s := &Server{replica: r, secret: at.secret, log: o.Log}
	s.door = frame.OpenDoor(l, maxClients, o.Log, s.serve)
	return s, nil
}

// Addr is where the server listens: a path or host:port.
func (s *Server) Addr() string { return s.door.Addr().String() }

// Close ends all connections. The replica stays in its group.
func (s *Server) Close() error { return s.door.Close() }

// ServerMetrics counts what clients asked for.
type ServerMetrics struct {
	Calls        uint64 // requests of clients
	Refused      uint64 // of them, those that were not granted
	Malformed    uint64 // connections that did not speak the protocol
	Unauthorized uint64 // connections without the secret
}

// Metrics tells what happened so far.
func (s *Server) Metrics() ServerMetrics {
	return ServerMetrics{s.calls.Load(), s.refused.Load(), s.malformed.Load(), s.unauthorized.Load()}
}

// serve is one client's connection.
func (s *Server) serve(c net.Conn) {
	who, err := s.greet(c)
	var made uint64 // the offer that was made to this client last
	for err == nil {
		err = s.one(c, who, &made)
	}
	s.replica.withdraw(made)
	switch {
	case errors.Is(err, frame.ErrUnauthorized):
		s.unauthorized.Add(1)
		s.log.Warn("a client without the secret was refused", "addr", c.RemoteAddr().String())
	case errors.Is(err, frame.ErrMalformed) || errors.Is(err, errMalformed):
		s.malformed.Add(1)
		s.log.Warn("a client that makes no sense was refused", "addr", c.RemoteAddr().String(), "error", err)
	case !frame.UsualEnd(err):
		s.log.Info("a client's connection ended", "client", who, "error", err)
	}
}

// greeting is a client's hello.
type greeting struct{ Name string }

func (s *Server) greet(c net.Conn) (who string, err error) {
	_ = c.SetDeadline(time.Now().Add(controlTimeout))
	hello, err := frame.Hear(c, controlMagic, s.secret)
	if err != nil {
		return "", err
	}
	var g greeting
	if err := json.Unmarshal(hello, &g); err != nil {
		return "", fmt.Errorf("%w: %w", errMalformed, err)
	}
	if err := frame.Accept(c); err != nil {
		return "", err
	}
	return g.Name, c.SetDeadline(time.Time{})
}

// one answers a request. An error of the request is the answer; one of the
// connection ends it.
func (s *Server) one(c net.Conn, who string, made *uint64) error {
	var r controlRequest
	err := readControl(c, &r, func() { _ = c.SetDeadline(time.Now().Add(controlTimeout)) })
	if err != nil {
		return err
	}
	s.calls.Add(1)
	a, err := s.obey(r, who, made)
	if err != nil {
		s.refused.Add(1)
		s.log.Warn("refused", "verb", r.Verb, "client", who, "error", err)
		a = failure(err)
	}
	_ = c.SetWriteDeadline(time.Now().Add(controlTimeout))
	if err := writeControl(c, a); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

func (s *Server) obey(r controlRequest, who string, made *uint64) (a controlAnswer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
	defer cancel()
	switch {
	case r.Verb == askOffer && r.Spec != nil:
		s.replica.withdraw(*made)
		o, err := s.replica.Offer(ctx, *r.Spec)
		*made = o.ID
		return controlAnswer{Offer: &o}, err
	case r.Verb == askJoin && r.Join != nil:
		if err := s.replica.Join(ctx, *r.Join); err != nil {
			return a, err
		}
		s.log.Info("joined a group", "client", who, "index", r.Join.Index)
		s.tellOfTheEnd(who)
		return a, nil
	case r.Verb == askLeave:
		s.replica.Leave()
		return a, nil
	case r.Verb == askHealth:
		h := s.replica.Health()
		return controlAnswer{Health: &h}, nil
	}
	return a, fmt.Errorf("%w: %q is nothing that a replica can be asked like this", ErrRefused, r.Verb)
}

// tellOfTheEnd logs when the replica's group ends, and why.
func (s *Server) tellOfTheEnd(who string) {
	left, why := s.replica.ending()
	if left == nil {
		return
	}
	go func() {
		<-left
		s.log.Info("left the group", "client", who, "why", why())
	}()
}
