package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// secured is an etcd that speaks TLS, wants certificates of its clients, and lets the user "ostro" use
// the cluster "prod", and nothing else, with a password.
type secured struct {
	*authority
	addr string
}

const etcdPassword = "only the nodes of this test know it"

func newSecured(dir, addr, host string) (*secured, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	a, err := newAuthority(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"etcd", "node"} {
		if err := a.issue(name, host); err != nil {
			return nil, err
		}
	}
	return &secured{a, addr}, os.WriteFile(a.file("password"), []byte(etcdPassword+"\n"), 0o600)
}

// args are those of `ostro cluster etcd`.
func (s *secured) args() []string {
	return []string{"--cert", s.file("etcd.pem"), "--key", s.file("etcd.key"), "--client-ca", s.file("ca.pem")}
}

// url is what nodes are started with.
func (s *secured) url() string {
	return fmt.Sprintf("etcd://ostro@%s/prod?ca=%s&cert=%s&key=%s&password-file=%s",
		s.addr, s.file("ca.pem"), s.file("node.pem"), s.file("node.key"), s.file("password"))
}

// requirePasswords does what an operator does with etcdctl: user add, role add, role grant-permission, auth enable.
func (s *secured) requirePasswords(ctx context.Context) error {
	info := transport.TLSInfo{TrustedCAFile: s.file("ca.pem"), CertFile: s.file("node.pem"), KeyFile: s.file("node.key")}
	secure, err := info.ClientConfig()
	if err != nil {
		return err
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + s.addr}, TLS: secure, DialTimeout: Patience})
	if err != nil {
		return err
	}
	defer c.Close()
	const keys = "/ostro/prod/"
	for _, step := range []func() error{
		func() error { _, err := c.UserAdd(ctx, "root", "another password"); return err },
		func() error { _, err := c.RoleAdd(ctx, "root"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.UserAdd(ctx, "ostro", etcdPassword); return err },
		func() error { _, err := c.RoleAdd(ctx, "ostro"); return err },
		func() error {
			_, err := c.RoleGrantPermission(ctx, "ostro", keys, clientv3.GetPrefixRangeEnd(keys), clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := c.UserGrantRole(ctx, "ostro", "ostro"); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		if err := insist(step); err != nil {
			return fmt.Errorf("have etcd ask for passwords: %w", err)
		}
	}
	return nil
}

// insist asks etcd until it has done something: on a busy machine it may say that it was late, and has done it all the
// same. Then it refuses to do it again: users and roles are there, and who is not root may not turn passwords on.
func insist(ask func() error) error {
	err := ask()
	if !errors.Is(err, rpctypes.ErrTimeout) {
		return err
	}
	for errors.Is(err, rpctypes.ErrTimeout) {
		err = ask()
	}
	for _, done := range []error{
		rpctypes.ErrUserAlreadyExist, rpctypes.ErrRoleAlreadyExist,
		rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound, rpctypes.ErrPermissionDenied,
	} {
		if errors.Is(err, done) {
			return nil
		}
	}
	return err
}

// secure makes the cluster's etcd a secured one. It is called after StartEtcd the first time.
func (c *Cluster) secure() error {
	if c.secured == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return c.secured.requirePasswords(ctx)
}

// Login is how long etcd takes to hash the password of one more who comes; no time where it wants none.
func (c *Cluster) Login() (time.Duration, error) {
	if c.secured == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	began := time.Now()
	m, err := c.openMeta(ctx)
	if err != nil {
		return 0, err
	}
	return time.Since(began), m.Close()
}

func (c *Cluster) prepareSecured(addr string) {
	var err error
	c.secured, err = newSecured(filepath.Join(c.dir, "tls"), addr, c.host(TheEtcd))
	must(c.t, err)
	c.url = c.secured.url()
}
