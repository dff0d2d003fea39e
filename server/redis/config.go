package redis

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/balance"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/library"
)

// Config is what an operator decides about the Redis front door. The zero
// value of every field means its default.
type Config struct {
	Binds          []string      // addresses to listen on; default 127.0.0.1 and ::1 (the latter where it exists)
	Port           int           // default 6379; -1: no TCP listener; PortAny: any free port
	UnixSocket     string        // path of a unix socket; default none
	UnixSocketPerm uint32        // its permissions; default 0o700
	TLS            TLSConfig     // a second, encrypted port
	RequirePass    string        // password of the default user; default none
	ProtectedMode  ProtectedMode // refuse strangers while there is no password; default on
	MaxClients     int           // default 10,000
	Timeout        time.Duration // close clients idle for so long; default never
	TCPKeepAlive   time.Duration // default 300 s; negative: off
	Databases      int           // default 16
	Loops          int           // most network loops; default as many as useful, up to GOMAXPROCS
	MaxBulkBytes   int64         // longest argument; default 512 MiB
	MaxQueryBytes  int64         // most input held for one client; default 1 GiB
	OutputLimit    OutputLimit   // most replies held for one client; default none, as Redis for normal clients

	SlowlogThresholdMicros int64 // commands that take longer are logged; default 10,000; negative: none; LogEverything: all
	SlowlogMaxLen          int   // default 128

	// Tenants are who shares the server with its operator; default nil: nobody.
	Tenants *tenant.Registry
	// Functions are what clients have installed; default nil: they cannot.
	Functions *library.Library

	// Cluster makes the server a node of a cluster; default nil, a server on its own.
	Cluster Cluster
	// Heat, if there is one, is told which slots of the cluster are used.
	Heat *balance.Meter
	// ClusterWait is how long a command waits for a range that is being recovered before
	// it fails with CLUSTERDOWN; default 30 s.
	ClusterWait time.Duration
	// Proxy has commands for other nodes' keys forwarded there instead of sending
	// the client away with MOVED, for clients that do not know clusters.
	Proxy bool
	// ProxyDial connects to other nodes' Redis ports; default plain TCP to Node.Address.
	ProxyDial func(ctx context.Context, n Node) (net.Conn, error)

	Logger *slog.Logger // default: discard
}

// PortAny asks for any free port; Server.Addr tells which.
const PortAny = -2

// LogEverything is the slow log threshold that logs every command.
const LogEverything = 1<<63 - 1

// ProtectedMode says whether to refuse clients that are not local while no password is set.
type ProtectedMode uint8

// Protected mode is on unless switched off.
const (
	ProtectedOn ProtectedMode = iota
	ProtectedOff
)

// OutputLimit bounds replies that a client does not read. Zero means no limit.
type OutputLimit struct {
	HardBytes int64         // close at once beyond this
	SoftBytes int64         // close when beyond this
	SoftTime  time.Duration // for so long
}

// TLSConfig describes the encrypted port. Port 0 means none.
type TLSConfig struct {
	Port       int
	CertFile   string
	KeyFile    string
	CAFile     string     // whom to believe when clients show certificates
	ClientAuth ClientAuth // default: certificates required, as Redis' tls-auth-clients
}

// ClientAuth says whether clients must show a certificate.
type ClientAuth uint8

// As Redis' tls-auth-clients: yes, no, optional.
const (
	ClientAuthYes ClientAuth = iota
	ClientAuthNo
	ClientAuthOptional
)

// withDefaults returns the Config with every zero field filled in.
func (c Config) withDefaults() Config {
	setDefault(&c.Port, 6379)
	setDefault(&c.UnixSocketPerm, 0o700)
	setDefault(&c.MaxClients, 10_000)
	setDefault(&c.TCPKeepAlive, 300*time.Second)
	setDefault(&c.Databases, 16)
	setDefault(&c.MaxBulkBytes, 512<<20)
	setDefault(&c.MaxQueryBytes, 1<<30)
	setDefault(&c.SlowlogThresholdMicros, 10_000)
	setDefault(&c.SlowlogMaxLen, 128)
	setDefault(&c.ClusterWait, 30*time.Second)
	if c.SlowlogThresholdMicros == LogEverything {
		c.SlowlogThresholdMicros = 0
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// check finds settings that cannot work.
func (c *Config) check() error {
	switch {
	case c.Port > 65535:
		return fmt.Errorf("port %d is not a TCP port: use 1 to 65535", c.Port)
	case c.Databases < 1:
		return fmt.Errorf("databases is %d: at least one is needed", c.Databases)
	case c.Loops < 0:
		return fmt.Errorf("loops is %d: use 0 for automatic or a positive number", c.Loops)
	case tenant.CheckPassword(c.RequirePass) != nil:
		return fmt.Errorf("requirepass: %w", tenant.CheckPassword(c.RequirePass))
	case c.TLS.Port != 0 && (c.TLS.CertFile == "" || c.TLS.KeyFile == ""):
		return fmt.Errorf("tls-port %d needs a certificate and a key file", c.TLS.Port)
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// settings are the parts of Config that CONFIG SET may change while loops
// read them.
type settings struct {
	requirePass   atomic.Pointer[string] // never nil
	protectedMode atomic.Bool
	maxClients    atomic.Int64
	timeoutMillis atomic.Int64 // 0: never
	keepAliveSecs atomic.Int64 // 0: off
	maxBulkBytes  atomic.Int64
	maxQueryBytes atomic.Int64
	outputHard    atomic.Int64
	outputSoft    atomic.Int64
	outputSecs    atomic.Int64
	slowlogMicros atomic.Int64 // negative: off; 0: everything
}

func (s *settings) init(c *Config) {
	pass := c.RequirePass
	s.requirePass.Store(&pass)
	s.protectedMode.Store(c.ProtectedMode == ProtectedOn)
	s.maxClients.Store(int64(c.MaxClients))
	s.timeoutMillis.Store(c.Timeout.Milliseconds())
	s.keepAliveSecs.Store(int64(max(c.TCPKeepAlive, 0) / time.Second))
	s.maxBulkBytes.Store(c.MaxBulkBytes)
	s.maxQueryBytes.Store(c.MaxQueryBytes)
	s.outputHard.Store(c.OutputLimit.HardBytes)
	s.outputSoft.Store(c.OutputLimit.SoftBytes)
	s.outputSecs.Store(int64(c.OutputLimit.SoftTime / time.Second))
	s.slowlogMicros.Store(c.SlowlogThresholdMicros)
}
