// Package client speaks Ostro's native protocol to a node or a cluster.
package client

import (
	"context"
	"crypto/tls"
	"time"
)

// Options say how a client works. The zero value is a good one.
type Options struct {
	Password string
	TLS      *tls.Config
	// Workers is how many sessions there are to each server; 0: 1.
	Workers int
	// MaxInFlight is how many operations a session has unanswered; 0: 16,384.
	MaxInFlight int
	// FailWhenFull returns ErrBusy where an operation would wait for its turn.
	FailWhenFull bool
	// BatchBytes and BatchOps end a batch; 0: 32 KiB and 256.
	BatchBytes, BatchOps int
	// Linger is how long operations wait for others while a batch is under way; 0: 200 µs.
	Linger time.Duration
	// Retry is for how long an operation is tried; 0: 60 s.
	Retry time.Duration
}

// Client is a connection to a node or a cluster.
type Client struct{ opts Options }

// Dial connects to one of the addresses in url, ostro://host:port,host2:port.
func Dial(ctx context.Context, url string, o Options) (*Client, error) { return nil, nil }
