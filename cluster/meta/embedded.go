package meta

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ostrodb/ostro/internal/port"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
)

// Embedded is an etcd of one member within this process, for development and
// tests: it is no more available than the process.
type Embedded struct {
	server *embed.Etcd
	ports  []*port.Reservation
	addr   string

	mu    sync.Mutex
	grpcs []*grpc.Server
}

// EmbeddedConfig is where an Embedded lives.
type EmbeddedConfig struct {
	Dir  string       // kept; the next one that starts there goes on with it
	Addr string       // where clients come in; a free port of the loopback if empty
	Log  *slog.Logger // slog.Default if nil
	// CertFile and KeyFile have it speak TLS; with ClientCAFile, clients need a certificate of that authority.
	CertFile, KeyFile, ClientCAFile string

	adjust func(*embed.Config)
}

// StartEmbedded starts etcd and returns when it serves.
func StartEmbedded(ctx context.Context, c EmbeddedConfig) (*Embedded, error) {
	e := &Embedded{addr: c.Addr}
	ec, err := e.config(c)
	if err == nil {
		err = e.start(ctx, ec)
	}
	if err != nil {
		e.Close()
		return nil, fmt.Errorf("start etcd in %s: %w", c.Dir, err)
	}
	return e, nil
}

func (e *Embedded) config(c EmbeddedConfig) (*embed.Config, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	peer, err := e.reserve()
	if err != nil {
		return nil, err
	}
	if e.addr == "" {
		if e.addr, err = e.reserve(); err != nil {
			return nil, err
		}
	}
	ec := embed.NewConfig()
	ec.Name, ec.Dir = "ostro", filepath.Join(c.Dir, "etcd")
	ec.ListenPeerUrls, ec.AdvertisePeerUrls = urls("http", peer), urls("http", peer)
	ec.ListenClientUrls, ec.AdvertiseClientUrls = urls("http", e.addr), urls("http", e.addr)
	if err := c.secure(ec); err != nil {
		return nil, err
	}
	ec.InitialCluster = ec.InitialClusterFromName(ec.Name)
	// Alone, it needs nobody's vote, and yet waits for up to so long when it starts; and leases may be as short as a second.
	ec.TickMs, ec.ElectionMs = 20, 100
	ec.AutoCompactionMode, ec.AutoCompactionRetention = embed.CompactorModePeriodic, "10m"
	// It keeps its last entries in memory for members that are behind, and there are none. Pieces of code are long entries.
	ec.SnapshotCount, ec.SnapshotCatchUpEntries = 1000, 100
	ec.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zapTo(Config{Log: c.Log}.logger()))
	ec.ServiceRegister = e.remember
	if c.adjust != nil {
		c.adjust(ec)
	}
	return ec, nil
}

// secure has clients come in by TLS, if it shall be so.
func (c EmbeddedConfig) secure(ec *embed.Config) error {
	switch {
	case c.CertFile == "" && c.KeyFile == "" && c.ClientCAFile == "":
		return nil
	case c.CertFile == "" || c.KeyFile == "":
		return errors.New("TLS needs a certificate and its key: name both files")
	}
	ec.ClientTLSInfo = transport.TLSInfo{
		CertFile: c.CertFile, KeyFile: c.KeyFile, TrustedCAFile: c.ClientCAFile, ClientCertAuth: c.ClientCAFile != "",
	}
	ec.ListenClientUrls[0].Scheme, ec.AdvertiseClientUrls[0].Scheme = "https", "https"
	return nil
}

func (e *Embedded) reserve() (string, error) {
	r, err := port.Reserve()
	if err != nil {
		return "", err
	}
	e.ports = append(e.ports, r)
	return r.Addr(), nil
}

func urls(scheme, addr string) []url.URL { return []url.URL{{Scheme: scheme, Host: addr}} }

func (e *Embedded) start(ctx context.Context, ec *embed.Config) error {
	server, err := embed.StartEtcd(ec)
	if err != nil {
		return err
	}
	e.server = server
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	select {
	case <-server.Server.ReadyNotify():
		return nil
	case err := <-server.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return errors.New("it was not ready within a minute: look whether its disk is full or very slow")
	}
}

// Addr is where clients come in.
func (e *Embedded) Addr() string { return e.addr }

// URL is what ParseURL takes.
func (e *Embedded) URL() string { return "etcd://" + e.addr }

func (e *Embedded) remember(s *grpc.Server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.grpcs = append(e.grpcs, s)
}

// hangUp ends all connections. etcd alone would wait seconds for watchers to go by themselves.
func (e *Embedded) hangUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.grpcs {
		s.Stop()
	}
}

// Close stops it. Its directory stays.
func (e *Embedded) Close() {
	e.hangUp()
	if e.server != nil {
		e.server.Close()
	}
	for _, r := range e.ports {
		r.Release()
	}
}
