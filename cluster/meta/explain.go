package meta

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// explain makes one helpful sentence of why etcd did not answer.
func (c Config) explain(err error) error {
	at := strings.Join(c.Endpoints, ", ")
	switch {
	case errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrAuthFailed):
		return fmt.Errorf("etcd at %s refused the user %q: check the name and the password: %w", at, c.User, err)
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Errorf("the user %q may not use /ostro/%s/ of etcd at %s: grant it a role that may read and write there: %w", c.User, c.cluster(), at, err)
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.Unavailable:
		for _, e := range c.Endpoints {
			if why := c.knock(e); why != nil {
				return why
			}
		}
		return fmt.Errorf("etcd at %s does not answer: check that it runs, and that the address is right: %w", at, err)
	}
	return fmt.Errorf("ask etcd at %s: %w", at, err)
}

// Passing tells whether an error of etcd may be another thing soon: it was busy, or had no leader.
func Passing(err error) bool {
	var said rpctypes.EtcdError
	if errors.As(err, &said) {
		return said.Code() == codes.Unavailable || errors.Is(err, rpctypes.ErrTooManyRequests)
	}
	return status.Code(err) == codes.Unavailable
}

// knock shakes hands with an endpoint as gRPC would, which says only that time went by
// when a handshake fails. It returns nil if it finds nothing wrong.
func (c Config) knock(endpoint string) error {
	secure, err := c.tls()
	if err != nil {
		return err
	}
	if secure == nil {
		// It is only asked whether it speaks TLS.
		if _, err := c.handshake(endpoint, &tls.Config{InsecureSkipVerify: true}); err == nil || refused(err) {
			return fmt.Errorf("etcd at %s wants TLS: name its authority with ca=FILE, or tls=on for those of the system", endpoint)
		}
		return nil
	}
	reached, err := c.handshake(endpoint, secure)
	switch {
	case err == nil || !reached:
		return nil
	case refused(err) && c.CertFile == "":
		return fmt.Errorf("etcd at %s wants a certificate: name one with cert=FILE and key=FILE: %w", endpoint, err)
	case refused(err):
		return fmt.Errorf("etcd at %s refused the certificate in %s: %w", endpoint, c.CertFile, err)
	}
	return fmt.Errorf("etcd at %s does not speak TLS as it should: check its certificate and ca=FILE: %w", endpoint, err)
}

// refused tells whether the other side ended a handshake, and said why.
func refused(err error) bool {
	var said *net.OpError
	return errors.As(err, &said) && said.Op == "remote error"
}

// handshake tells whether somebody listens, and what became of TLS with them. Whether the client's certificate will do the
// other side says after its own part is done, to the first who reads.
func (c Config) handshake(endpoint string, secure *tls.Config) (reached bool, err error) {
	patience := cmp.Or(c.knockTimeout, time.Second)
	conn, err := net.DialTimeout("tcp", endpoint, patience)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	secure = secure.Clone()
	secure.NextProtos = []string{"h2"}
	if secure.ServerName == "" {
		secure.ServerName, _, _ = net.SplitHostPort(endpoint)
	}
	t := tls.Client(conn, secure)
	if err := t.Handshake(); err != nil {
		return !errors.Is(err, os.ErrDeadlineExceeded), err
	}
	if _, err := t.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return true, err
	}
	return true, nil
}
