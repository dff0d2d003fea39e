package redis

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	handshakeSeconds = 10
	tlsReadBytes     = 16 << 10 // a TLS record

	// tlsLinger is how long a client may take to read what it was sent before its loop closed. It counts as no client any more.
	tlsLinger = 10 * time.Second
)

// tlsFront is the encrypted port. Go's own TLS runs in two goroutines per
// client, and the plain bytes go through a pipe to a loop, which serves them
// like any other connection: the same limits, the same parking, the same
// shutdown.
//
// Invariant: whichever end closes, the goroutines close the other.
type tlsFront struct {
	config    *tls.Config
	linger    atomic.Int64 // nanoseconds
	listeners []net.Listener
	accepting sync.WaitGroup
	pumping   sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

// prepare reads certificates; it does nothing without a port.
func (t *tlsFront) prepare(c *TLSConfig) error {
	if c.Port == 0 {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return fmt.Errorf("reading the TLS certificate %s and key %s: %w", c.CertFile, c.KeyFile, err)
	}
	t.config = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	t.linger.Store(int64(tlsLinger))
	t.open = make(map[net.Conn]struct{})
	if c.ClientAuth == ClientAuthNo {
		return nil
	}
	if t.config.ClientCAs, err = readCAs(c.CAFile); err != nil {
		return err
	}
	t.config.ClientAuth = tls.RequireAndVerifyClientCert
	if c.ClientAuth == ClientAuthOptional {
		t.config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return nil
}

func readCAs(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, fmt.Errorf("tls-auth-clients needs tls-ca-cert-file: name one, or set tls-auth-clients to no")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the CA certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return pool, nil
}

// listen opens the port on every bind address.
func (t *tlsFront) listen(s *Server) error {
	if t.config == nil {
		return nil
	}
	bound, err := listenOnBinds(s.cfg.Binds, s.cfg.TLS.Port)
	if err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	t.listeners = bound
	return nil
}

func (t *tlsFront) addr() net.Addr {
	if len(t.listeners) == 0 {
		return nil
	}
	return t.listeners[0].Addr()
}

// serve accepts until stopAccepting.
func (t *tlsFront) serve(s *Server) {
	for _, ln := range t.listeners {
		t.accepting.Go(func() { t.accept(s, ln) })
	}
}

func (t *tlsFront) accept(s *Server, ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		if !t.keep(c) {
			_ = c.Close()
			return
		}
		t.pumping.Go(func() {
			defer t.drop(c)
			t.bridge(s, c)
		})
	}
}

// bridge shakes hands, then pumps until both directions have ended.
func (t *tlsFront) bridge(s *Server, raw net.Conn) {
	client := tls.Server(raw, t.config)
	_ = client.SetDeadline(time.Now().Add(handshakeSeconds * time.Second))
	if err := client.Handshake(); err != nil {
		s.log.Info("TLS handshake failed", "client", raw.RemoteAddr().String(), "error", err)
		return
	}
	_ = client.SetDeadline(time.Time{})
	c := s.enterTLS(raw)
	var up sync.WaitGroup
	up.Go(func() { pumpUp(c.pipe, client) })
	if pumpDown(c.pipe, client) {
		_ = client.CloseWrite() // says goodbye
	}
	_ = raw.Close() // ends the other goroutine
	up.Wait()
}

// enterTLS gives a client to a loop. One that may not come in finds why in the
// pipe.
func (s *Server) enterTLS(raw net.Conn) *conn {
	c := &conn{srv: s, fd: -1, pipe: newPipe(), tls: true}
	c.addr, c.laddr = raw.RemoteAddr().String(), raw.LocalAddr().String()
	c.pipe.tell = func(events uint32) {
		if l := c.loop.Load(); l != nil {
			l.post(message{ready: readyConn{c, events}})
		}
	}
	c.pipe.over = func() { _ = raw.SetWriteDeadline(time.Now().Add(time.Duration(s.tls.linger.Load()))) } // A connection that cannot is at its end.
	peer, _ := raw.RemoteAddr().(*net.TCPAddr)
	if s.welcome(c, peer != nil && peer.IP.IsLoopback()) {
		s.place(c)
	} else {
		c.hangUp()
	}
	return c
}

// pumpUp carries what the client sends.
func pumpUp(p *pipe, client io.Reader) {
	b := make([]byte, tlsReadBytes)
	for {
		n, err := client.Read(b)
		if n > 0 && !p.offer(b[:n]) {
			return
		}
		if err != nil {
			p.end(err != io.EOF)
			return
		}
	}
}

// pumpDown carries the replies until the loop has closed, and tells whether the client took them.
func pumpDown(p *pipe, client io.Writer) bool {
	var b []byte
	for {
		if b = p.next(b); b == nil {
			return true
		}
		if _, err := client.Write(b); err != nil {
			p.end(true)
			return false
		}
		b = idleBuffer(b)
	}
}

// keep notes an open connection, unless the front is closed.
func (t *tlsFront) keep(c net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.open[c] = struct{}{}
	return true
}

func (t *tlsFront) drop(c net.Conn) {
	_ = c.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, c)
}

func (t *tlsFront) stopAccepting() {
	for _, ln := range t.listeners {
		_ = ln.Close()
	}
	t.accepting.Wait()
}

// wait returns when the last pump has ended.
func (t *tlsFront) wait() { t.pumping.Wait() }

// close ends everything at once.
func (t *tlsFront) close() {
	for _, ln := range t.listeners {
		_ = ln.Close()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for c := range t.open {
		_ = c.Close()
	}
}
