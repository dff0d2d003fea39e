package redis

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const handshakeSeconds = 10

// tlsFront is the encrypted port. Go's own TLS ends in goroutines here, two
// per client, and plain bytes go on through a socket pair to a loop, which
// serves them like any other connection: the same limits, the same parking,
// the same shutdown.
//
//	client == TLS == pump goroutines == socket pair == loop
//
// Invariant: whichever end closes, the pumps close the other.
type tlsFront struct {
	config    *tls.Config
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
	binds, port := s.cfg.Binds, max(s.cfg.TLS.Port, 0)
	if len(binds) == 0 {
		binds = []string{"127.0.0.1", "-::1"}
	}
	for _, bind := range binds {
		host, optional := strings.CutPrefix(bind, "-")
		if host == "*" {
			host = ""
		}
		ln, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		switch {
		case err == nil:
			t.listeners = append(t.listeners, ln)
			port = ln.Addr().(*net.TCPAddr).Port
		case optional && addressMissing(err):
		default:
			t.close()
			return fmt.Errorf("listening for TLS: %w", err)
		}
	}
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

// bridge shakes hands and pumps until both directions have ended.
func (t *tlsFront) bridge(s *Server, raw net.Conn) {
	client := tls.Server(raw, t.config)
	_ = client.SetDeadline(time.Now().Add(handshakeSeconds * time.Second))
	if err := client.Handshake(); err != nil {
		s.log.Info("TLS handshake failed", "client", raw.RemoteAddr().String(), "error", err)
		return
	}
	_ = client.SetDeadline(time.Time{})
	inner, err := t.enter(s, raw)
	if err != nil {
		s.log.Error("connecting a TLS client to a loop failed", "client", raw.RemoteAddr().String(), "error", err)
		return
	}
	defer inner.Close()
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(inner, client)
		_ = inner.(*net.UnixConn).CloseWrite() // the loop still answers what it has
	})
	_, _ = io.Copy(client, inner)
	_ = client.CloseWrite()
	_ = raw.Close()
	up.Wait()
}

// enter makes a socket pair and gives one end to a loop. A client that may
// not come in finds its refusal in the other.
func (t *tlsFront) enter(s *Server, raw net.Conn) (net.Conn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fds[1]), "tls")
	inner, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		_ = unix.Close(fds[0])
		return nil, err
	}
	c := &conn{srv: s, fd: fds[0], tls: true, addr: raw.RemoteAddr().String(), laddr: raw.LocalAddr().String()}
	peer, _ := raw.RemoteAddr().(*net.TCPAddr)
	if s.welcome(c, peer != nil && peer.IP.IsLoopback()) {
		s.place(c)
	} else {
		_ = unix.Close(c.fd)
	}
	return inner, nil
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
