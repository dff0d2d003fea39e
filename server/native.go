package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/session"
)

// startNative opens the port for native clients of a server on its own.
func (n *Node) startNative(st *store.Store) (err error) {
	if n.cfg.NativePort == 0 {
		return nil
	}
	o := session.Options{
		Check:  n.cfg.ownershipCheck(),
		Access: n.access, Node: "alone", MaxSessions: n.cfg.MaxClients,
		Tenants: n.tenants.Load(), Functions: n.functions.Load(), Merges: n.merges,
		Logger: n.log.With("part", "native"),
	}
	if o.TLS, err = n.cfg.nativeTLS(); err != nil {
		return fmt.Errorf("open the native port: %w", err)
	}
	listeners, err := n.cfg.listenNative()
	if err != nil {
		return fmt.Errorf("open the native port: %w", err)
	}
	native, err := session.New(st, o)
	if err != nil {
		for _, l := range listeners {
			_ = l.Close() // What went wrong before is what counts.
		}
		return err
	}
	n.native.Store(native)
	for _, l := range listeners {
		go n.serveNative(native, l)
	}
	return nil
}

// access is what an operator has to know, as CONFIG SET may have changed it: both front doors ask for the same.
func (n *Node) access() (password string, protected bool) {
	if r := n.redis.Load(); r != nil {
		return r.Access()
	}
	return n.cfg.RequirePass, n.cfg.ProtectedMode
}

func (n *Node) serveNative(native *session.Server, l net.Listener) {
	if err := native.Serve(l); !errors.Is(err, session.ErrStopped) {
		n.log.Error("the native port has closed", "addr", l.Addr().String(), "err", err)
	}
}

// ownershipCheck is the setting of that name as the front door knows it.
func (c *Config) ownershipCheck() session.Check {
	if c.OwnershipCheck == "keys" {
		return session.ByKeys
	}
	return session.ByViews
}

// stopNative lets native clients have their answers.
func (n *Node) stopNative(ctx context.Context) {
	native := n.native.Load()
	if native == nil {
		return
	}
	if err := native.Shutdown(ctx); err != nil {
		n.log.Warn("native clients were cut off", "err", err)
	}
}

// listenNative listens on every bind address, or on none.
func (c *Config) listenNative() (listeners []net.Listener, err error) {
	for _, host := range c.Bind {
		host, optional := strings.CutPrefix(host, "-")
		l, err := net.Listen("tcp", net.JoinHostPort(strings.TrimPrefix(host, "*"), strconv.Itoa(c.NativePort)))
		if err != nil && !optional {
			for _, l := range listeners {
				_ = l.Close()
			}
			return nil, err
		}
		if err == nil {
			listeners = append(listeners, l)
		}
	}
	return listeners, nil
}

// nativeTLS is what the native port speaks: TLS if the plain Redis port is off and there is a
// certificate, so that a server that speaks TLS only does so here, too.
func (c *Config) nativeTLS() (*tls.Config, error) {
	if c.Port != 0 || c.TLSCertFile == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(c.TLSCertFile, c.TLSKeyFile)
	if err != nil {
		return nil, err
	}
	t := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	if c.TLSAuthClients == "no" || c.TLSAuthClients == "" && c.TLSCACertFile == "" {
		return t, nil
	}
	if t.ClientCAs, err = certPool(c.TLSCACertFile); err != nil {
		return nil, err
	}
	t.ClientAuth = tls.RequireAndVerifyClientCert
	if c.TLSAuthClients == "optional" {
		t.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return t, nil
}
