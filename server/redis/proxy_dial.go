package redis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
)

// dialNode connects to another node's Redis port: the plain one if it has one.
func (s *Server) dialNode(ctx context.Context, n Node) (net.Conn, error) {
	if s.cfg.ProxyDial != nil {
		return s.cfg.ProxyDial(ctx, n)
	}
	var d net.Dialer
	if n.Address != "" {
		return d.DialContext(ctx, "tcp", n.Address)
	}
	config, err := s.cfg.TLS.clientConfig()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: &d, Config: config}).DialContext(ctx, "tcp", n.TLSAddress)
}

// clientConfig is how a node shows itself to others' encrypted ports: with its
// own certificate, believing whom it believes about clients.
func (c *TLSConfig) clientConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the TLS certificate %s and key %s: %w", c.CertFile, c.KeyFile, err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	if c.CAFile != "" {
		pool, err := readCAs(c.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	return config, nil
}
