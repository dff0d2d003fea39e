package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant"
)

// check adds what is wrong with settings that each parsed well. A problem is
// placed where the setting came from.
func (l *loader) check() {
	wrong := func(key, format string, args ...any) {
		l.problem(place(key, l.Origin[key]), format, args...)
	}
	c := &l.Config
	c.checkNetwork(wrong)
	c.checkTLS(wrong)
	c.checkData(wrong)
	c.checkCluster(wrong)
	if c.AdminAddr != "" {
		if _, _, err := net.SplitHostPort(c.AdminAddr); err != nil {
			wrong("admin-addr", "must be HOST:PORT such as 127.0.0.1:9736, not %q", c.AdminAddr)
		}
	}
	if c.FunctionDeadline <= 0 {
		wrong("function-deadline", "must be longer than 0s")
	}
	if c.ShutdownTimeout <= 0 {
		wrong("shutdown-timeout", "must be longer than 0s")
	}
}

// Check tells all that is wrong with a Config that was built in Go.
func (c Config) Check() error {
	l := loader{Loaded: Loaded{Config: c}}
	l.check()
	if len(l.problems) > 0 {
		return &ConfigError{Problems: l.problems}
	}
	return nil
}

type complain func(key, format string, args ...any)

func (c *Config) checkNetwork(wrong complain) {
	between := func(key string, n, low, high int) {
		if n < low || n > high {
			wrong(key, "must be from %d to %d, not %d", low, high, n)
		}
	}
	between("port", c.Port, 0, 65535)
	between("tls-port", c.TLSPort, 0, 65535)
	between("databases", c.Databases, 1, 1<<16)
	between("loops", c.Loops, 0, 1024)
	between("maxclients", c.MaxClients, 1, 1<<24)
	if c.Port == 0 && c.TLSPort == 0 && c.UnixSocket == "" {
		wrong("port", "and tls-port are both 0 and there is no unixsocket; nobody could connect")
	}
	if c.Port != 0 && c.Port == c.TLSPort {
		wrong("tls-port", "must differ from port, both are %d", c.Port)
	}
	if len(c.Bind) == 0 {
		wrong("bind", "is empty; use 127.0.0.1 for this machine only or 0.0.0.0 for every network")
	}
	for _, host := range c.Bind {
		if host = strings.TrimPrefix(host, "-"); strings.Contains(host, "]") || net.ParseIP(host) == nil && strings.Contains(host, ":") {
			wrong("bind", "takes addresses without a port, not %q; the port is a setting of its own", host)
		}
	}
	if err := tenant.CheckPassword(c.RequirePass); err != nil {
		wrong("requirepass", "does not work: %v", err)
	}
	if c.Timeout < 0 {
		wrong("timeout", "cannot be negative")
	}
	if c.TCPKeepAlive < 0 {
		wrong("tcp-keepalive", "cannot be negative")
	}
	if c.MaxArgument < 1<<20 || c.MaxArgument > 512<<20 {
		wrong("proto-max-bulk-len", "must be from 1MiB to 512MiB, not %s", c.MaxArgument)
	}
	if c.MaxInput < 1<<20 {
		wrong("client-query-buffer-limit", "must be at least 1MiB, not %s", c.MaxInput)
	}
}

func (c *Config) checkTLS(wrong complain) {
	if c.TLSPort == 0 && c.TLSCertFile == "" && c.TLSKeyFile == "" && c.TLSCACertFile == "" {
		return
	}
	if c.TLSPort == 0 {
		wrong("tls-port", "is not set, so the TLS files would go unused; set it, for example to 6380")
	}
	if c.TLSCertFile == "" {
		wrong("tls-cert-file", "is missing; TLS needs a certificate and its key")
	}
	if c.TLSKeyFile == "" {
		wrong("tls-key-file", "is missing; TLS needs a certificate and its key")
	}
	if c.TLSCertFile != "" && c.TLSKeyFile != "" {
		if _, err := tls.LoadX509KeyPair(c.TLSCertFile, c.TLSKeyFile); err != nil {
			wrong(blamed(err, c), "cannot be used: %s", strings.TrimPrefix(err.Error(), "tls: "))
		}
	}
	if c.TLSCACertFile == "" && c.TLSAuthClients == "yes" {
		wrong("tls-auth-clients", "is yes, which needs tls-ca-cert-file to check clients' certificates against")
	}
	if c.TLSCACertFile != "" {
		if _, err := certPool(c.TLSCACertFile); err != nil {
			wrong("tls-ca-cert-file", "cannot be used: %s", err)
		}
	}
}

// blamed names the setting whose file a key pair's error is about.
func blamed(err error, c *Config) string {
	if e := new(os.PathError); errors.As(err, &e) && e.Path == c.TLSKeyFile {
		return "tls-key-file"
	}
	return "tls-cert-file"
}

func certPool(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no PEM certificate", file)
	}
	return pool, nil
}

// blobSchemes are the kinds of shared tiers that are compiled in.
var blobSchemes = []string{"file", "s3", "azblob", "gs", "mem"}

func (c *Config) checkData(wrong complain) {
	if c.CheckpointEvery < 0 {
		wrong("checkpoint-every", "cannot be negative")
	}
	if size := c.SegmentSize; size < 64<<10 || size > 8<<20 || size&(size-1) != 0 {
		wrong("segment-size", "must be a power of two from 64KiB to 8MiB, not %s", size)
	}
	if c.MemoryLimit.Bytes != 0 && c.MemoryLimit.Bytes < 8*c.SegmentSize {
		wrong("memory-limit", "must hold at least 8 segments, that is %s; it is %s", 8*c.SegmentSize, c.MemoryLimit)
	}
	if c.BlobURL != "" {
		u, err := url.Parse(c.BlobURL)
		if err != nil || !slices.Contains(blobSchemes, u.Scheme) {
			wrong("blob-url", "must begin with file://, s3://, azblob:// or gs://, not %q", c.BlobURL)
		}
	}
	if c.DiskLimit != 0 && c.BlobURL == "" {
		wrong("disk-limit", "needs a shared tier where segments go instead; set blob-url")
	}
	if c.Dir == "" && c.BlobURL != "" {
		wrong("blob-url", "needs a data directory; set dir")
	}
}

// effective returns the configuration that actually runs: a node without a data
// directory keeps nothing and cannot spill.
func (c Config) effective() Config {
	if c.Dir != "" {
		return c
	}
	c.Durability = store.None
	if c.MemoryPolicy == store.Spill {
		c.MemoryPolicy = store.Refuse
	}
	return c
}
