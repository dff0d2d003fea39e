package meta

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

// certificate writes one that is its own authority, for both sides, and returns its files.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ostro test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	ok(t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	ok(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	ok(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	ok(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, key
}

// tokenSeconds is how long a name and a password are good for until they are told again: far shorter than usual.
const tokenSeconds = 1

func startSecure(t *testing.T, cert, key string) *Embedded {
	t.Helper()
	e, err := StartEmbedded(patience(t), EmbeddedConfig{
		Dir: t.TempDir(), Log: quiet, CertFile: cert, KeyFile: key, ClientCAFile: cert,
		adjust: func(ec *embed.Config) { ec.AuthTokenTTL = tokenSeconds },
	})
	ok(t, err)
	t.Cleanup(e.Close)
	return e
}

// requirePasswords turns etcd's authentication on, with a user "ostro" that
// may use the cluster "mine" only.
func requirePasswords(t *testing.T, c *clientv3.Client) {
	ctx := patience(t)
	for _, user := range []string{"root", "ostro"} {
		insist(t, func() error { _, err := c.UserAdd(ctx, user, "pw of "+user); return err }, rpctypes.ErrUserAlreadyExist)
		insist(t, func() error { _, err := c.RoleAdd(ctx, user); return err }, rpctypes.ErrRoleAlreadyExist)
		insist(t, func() error { _, err := c.UserGrantRole(ctx, user, user); return err })
	}
	from := "/ostro/mine/"
	insist(t, func() error {
		_, err := c.RoleGrantPermission(ctx, "ostro", from, clientv3.GetPrefixRangeEnd(from), clientv3.PermissionType(clientv3.PermReadWrite))
		return err
	})
	// Once it is on, whoever is not root may not ask for it.
	insist(t, func() error { _, err := c.AuthEnable(ctx); return err },
		rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound, rpctypes.ErrPermissionDenied)
}

// insist asks etcd until it has done something: on a busy machine it may say that it was late, and has done it all the same.
// Asked again it answers with one of done then, if it does not do it another time.
func insist(t *testing.T, ask func() error, done ...error) {
	t.Helper()
	err := ask()
	for errors.Is(err, rpctypes.ErrTimeout) {
		err = ask()
	}
	if !slices.ContainsFunc(done, func(d error) bool { return errors.Is(err, d) }) {
		ok(t, err)
	}
}

// outlastTokens changes the metadata for several times as long as a token lasts: lease, writes and watches go on.
func outlastTokens(t *testing.T, s *Store, m *Member) {
	t.Helper()
	cache := follow(t, s)
	copies := 0
	for end := time.Now().Add(4 * tokenSeconds * time.Second); time.Now().Before(end); {
		copies++
		ok(t, m.SetCopies(patience(t), copies))
		await(t, cache, "its own change", func(s *Snapshot) bool { return s.Logs[m.Node.Log].Copies == copies })
	}
	if !m.Lease.Alive() {
		t.Fatal("the lease has ended")
	}
}

func TestEtcdWithTLSAndPasswords(t *testing.T) {
	cert, key := certificate(t)
	e := startSecure(t, cert, key)
	c, err := ParseURL(e.URL() + "/mine?ca=" + cert + "&cert=" + cert + "&key=" + key)
	ok(t, err)
	c.Log, c.DialTimeout = quiet, 30*time.Second
	s, err := Open(patience(t), c)
	ok(t, err)
	requirePasswords(t, s.client)
	ok(t, s.Close())

	// Without a name, etcd takes the certificate's.
	_, err = Open(patience(t), c)
	wantError(t, err, "may not use /ostro/mine/")
	c.User, c.Password = "ostro", "wrong"
	_, err = Open(patience(t), c)
	wantError(t, err, "check the name and the password")
	c.Password = "pw of ostro"
	s, err = Open(patience(t), c)
	ok(t, err)
	defer s.Close()
	configure(t, s, time.Minute)
	m := join(t, s, "n1")
	term := campaign(t, m)
	ok(t, term.Begin(patience(t), "n1"))
	outlastTokens(t, s, m)
	ok(t, s.room(patience(t)))
	for i := range 3 { // It may not compact, which is no error.
		ok(t, s.forget(patience(t), int64(i+1)*time.Hour.Milliseconds()))
	}

	c.Cluster = "other"
	_, err = Open(patience(t), c)
	wantError(t, err, "grant it a role")
}

func TestWhatIsWrongWithTLSIsSaid(t *testing.T) {
	cert, key := certificate(t)
	strange, strangeKey := certificate(t)
	e := startSecure(t, cert, key)
	for _, test := range []struct {
		c    Config
		want string
	}{
		{Config{}, "wants TLS: name its authority with ca=FILE"},
		{Config{CAFile: cert}, "wants a certificate: name one with cert=FILE"},
		{Config{CAFile: cert, CertFile: strange, KeyFile: strangeKey}, "refused the certificate in " + strange},
		{Config{CAFile: strange, CertFile: cert, KeyFile: key}, "signed by unknown authority"},
	} {
		test.c.Endpoints, test.c.Log, test.c.DialTimeout, test.c.knockTimeout = []string{e.Addr()}, quiet, 300*time.Millisecond, time.Minute
		_, err := Open(context.Background(), test.c)
		wantError(t, err, test.want)
	}
	test := Config{Endpoints: []string{shared.Addr()}, Log: quiet, DialTimeout: 300 * time.Millisecond, knockTimeout: time.Minute, CAFile: cert}
	_, err := Open(context.Background(), test)
	wantError(t, err, "does not speak TLS as it should")
}
