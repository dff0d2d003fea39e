package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/ostrodb/ostro/wire/resp"
)

// target says which server to talk to, and as whom.
type target struct {
	host           string
	port           int
	socket         string
	user, password string
	db             int
	resp3          bool

	tls               bool
	caCert, cert, key string
	insecure          bool
}

// add adds the flags that say which server, and which password it asks for.
func (t *target) add(f *pflag.FlagSet, password string) {
	f.StringVarP(&t.host, "host", "h", "127.0.0.1", "server's host")
	f.IntVarP(&t.port, "port", "p", 6379, "server's port")
	f.StringVarP(&t.socket, "socket", "s", "", "server's unix socket, instead of host and port")
	f.StringVarP(&t.password, password, "a", "", "password to log in with; better in the environment as REDISCLI_AUTH, where ps does not show it")
	f.BoolVar(&t.tls, "tls", false, "connect over TLS")
	f.StringVar(&t.caCert, "cacert", "", "file of certificates to trust, PEM")
	f.StringVar(&t.cert, "cert", "", "file of the client's certificate, PEM")
	f.StringVar(&t.key, "key", "", "file of the client's key, PEM")
	f.BoolVar(&t.insecure, "insecure", false, "accept any certificate")
}

// lookUpPassword takes the password from the environment, if none was given.
func (t *target) lookUpPassword() { t.password = cmp.Or(t.password, os.Getenv("REDISCLI_AUTH")) }

// String is how a prompt names the server.
func (t *target) String() string {
	if t.socket != "" {
		return t.socket
	}
	return net.JoinHostPort(t.host, strconv.Itoa(t.port))
}

func (t *target) dial() (net.Conn, error) {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	switch {
	case t.socket != "":
		return dialer.Dial("unix", t.socket)
	case !t.tls:
		return dialer.Dial("tcp", t.String())
	}
	config, err := t.tlsConfig()
	if err != nil {
		return nil, err
	}
	conn, err := tls.DialWithDialer(dialer, "tcp", t.String(), config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s over TLS: %w", t, err)
	}
	return conn, nil
}

func (t *target) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{ServerName: t.host, InsecureSkipVerify: t.insecure}
	if t.caCert != "" {
		text, err := os.ReadFile(t.caCert)
		if err != nil {
			return nil, fmt.Errorf("--cacert: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--cacert: %s holds no PEM certificate", t.caCert)
		}
	}
	if t.cert != "" || t.key != "" {
		pair, err := tls.LoadX509KeyPair(t.cert, t.key)
		if err != nil {
			return nil, fmt.Errorf("--cert and --key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// client is one connection. It connects when it is first used, and again after
// it broke; what was under way then is lost and reported.
type client struct {
	target
	conn    net.Conn
	out     resp.Writer
	replies *resp.ReplyReader
}

// Connected tells whether there is a connection now.
func (c *client) Connected() bool { return c.conn != nil }

// Do sends one command and waits for its reply.
func (c *client) Do(args ...string) (resp.Value, error) {
	if err := c.Send(args...); err != nil {
		return resp.Value{}, err
	}
	return c.Receive()
}

// flushBytes is how much Send collects before it writes.
const flushBytes = 64 << 10

// Send adds a command to those under way.
func (c *client) Send(args ...string) error {
	if err := c.connect(); err != nil {
		return err
	}
	c.out.Array(len(args))
	for _, a := range args {
		c.out.BulkString(a)
	}
	if c.out.Len() >= flushBytes {
		return c.flush()
	}
	return nil
}

// Receive returns the reply to the oldest command under way. Messages that the
// server pushed in between are dropped.
func (c *client) Receive() (resp.Value, error) {
	if err := c.flush(); err != nil {
		return resp.Value{}, err
	}
	for {
		reply, err := c.replies.Read()
		if err != nil {
			_ = c.Close()
			return reply, fmt.Errorf("the server at %s hung up: %w", &c.target, err)
		}
		if reply.Kind != resp.Push {
			return reply, nil
		}
	}
}

// Close ends the connection, if there is one.
func (c *client) Close() error {
	if c.conn == nil {
		return nil
	}
	err := c.conn.Close()
	c.conn = nil
	return err
}

func (c *client) flush() error {
	if c.out.Len() == 0 || c.conn == nil {
		return nil
	}
	_, err := c.conn.Write(c.out.Bytes())
	c.out.Truncate(0)
	if err != nil {
		_ = c.Close()
		return fmt.Errorf("send to %s: %w", &c.target, err)
	}
	return nil
}

func (c *client) connect() error {
	if c.conn != nil {
		return nil
	}
	conn, err := c.dial()
	if err != nil {
		return err
	}
	c.conn, c.replies = conn, resp.NewReplyReader(conn)
	c.out.Truncate(0)
	if err := c.greet(); err != nil {
		_ = c.Close()
		return err
	}
	return nil
}

// greet does what the flags ask for before the first command.
func (c *client) greet() error {
	var steps [][]string
	if c.password != "" {
		auth := []string{"AUTH", c.password}
		if c.user != "" {
			auth = []string{"AUTH", c.user, c.password}
		}
		steps = append(steps, auth)
	}
	if c.resp3 {
		steps = append(steps, []string{"HELLO", "3"})
	}
	if c.db != 0 {
		steps = append(steps, []string{"SELECT", strconv.Itoa(c.db)})
	}
	for _, step := range steps {
		reply, err := c.Do(step...)
		if err == nil {
			err = reply.Err()
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("%s at %s: %w", step[0], &c.target, err)
		}
	}
	return nil
}
