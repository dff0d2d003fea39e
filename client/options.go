package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/ostrodb/ostro/internal/clock"
)

// Options say how a client works. The zero value is a good one.
type Options struct {
	// User is a tenant; empty: the operator. One in the URL goes before it.
	User string
	// Password is what the servers ask for. One in the URL goes before it.
	Password string
	// TLS, if set, is spoken with all servers; ostros:// in the URL asks for it with usual settings.
	TLS *tls.Config
	// Workers is how many sessions there are to each server; 0: 1. Operations on one key
	// always take the same one.
	Workers int
	// MaxInFlight is how many operations a session has unanswered; 0: 16,384.
	MaxInFlight int
	// FailWhenFull returns ErrBusy where an operation would wait for its turn.
	FailWhenFull bool
	// BatchBytes and BatchOps end a batch; 0: 32 KiB and 256.
	BatchBytes, BatchOps int
	// Linger is how long operations wait for others while batches are under way; 0: 200 µs.
	// With nothing under way they never wait.
	Linger time.Duration
	// Retry is for how long an operation is tried before it fails; 0: 60 s.
	Retry time.Duration
	// SessionTimeout is how long a server may be silent while it owes answers; 0: 3 s.
	SessionTimeout time.Duration
	// Unrecorded sends writes without an identity. They cost the server less, and one whose
	// answer is lost is not tried again: it fails with ErrUnknownOutcome.
	Unrecorded bool
	// Dial replaces the way connections are made.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	now func() time.Duration // what attempts of writes are as old by
}

func (o Options) withDefaults() Options {
	orElse(&o.Workers, 1)
	orElse(&o.MaxInFlight, 16_384)
	orElse(&o.BatchBytes, 32<<10)
	orElse(&o.BatchOps, 256)
	orElse(&o.Linger, 200*time.Microsecond)
	orElse(&o.Retry, 60*time.Second)
	orElse(&o.SessionTimeout, 3*time.Second)
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.now == nil {
		o.now = clock.SinceBoot
	}
	return o
}

func orElse[T comparable](v *T, other T) {
	if *v == *new(T) {
		*v = other
	}
}

// parseURL reads ostro://[[user]:password@]host:port[,host:port...][/].
func parseURL(url string, o *Options) (seeds []string, err error) {
	scheme, rest, ok := strings.Cut(url, "://")
	switch {
	case !ok || scheme != "ostro" && scheme != "ostros":
		return nil, fmt.Errorf("%q is no address of servers: use ostro://host:port,host:port, or ostros:// for TLS", url)
	case scheme == "ostros" && o.TLS == nil:
		o.TLS = &tls.Config{}
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		o.User, o.Password, _ = strings.Cut(rest[:i], ":")
		rest = rest[i+1:]
	}
	for seed := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), ",") {
		if _, _, err := net.SplitHostPort(seed); err != nil {
			return nil, fmt.Errorf("%q in the address of servers is not host:port: %w", seed, err)
		}
		seeds = append(seeds, seed)
	}
	return seeds, nil
}
