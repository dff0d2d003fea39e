package session_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/session"
)

// certificate makes one for 127.0.0.1, and the pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestSessionsMaySpeakTLS(t *testing.T) {
	cert, pool := certificate(t)
	_, addr := serve(t, openStore(t, store.Options{}), session.Options{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
	c := dial(t, "ostros://"+addr, client.Options{TLS: &tls.Config{RootCAs: pool}})
	var futures []*client.Future
	for i := range 500 {
		futures = append(futures, c.Add(t.Context(), 0, []byte{byte(i)}, 1))
	}
	wait(t, futures)
	run(t, c, story([]byte("story")))
	if _, err := client.Dial(t.Context(), "ostros://"+addr, client.Options{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Fatalf("a certificate that nobody trusts was taken: %v", err)
	}
	if _, err := client.Dial(t.Context(), "ostro://"+addr, client.Options{}); err == nil {
		t.Fatal("a client without TLS was served")
	}
}

// access is what does not change while a test runs.
func access(password string, protected bool) func() (string, bool) {
	return func() (string, bool) { return password, protected }
}

func TestOthersAreRefusedWithAWord(t *testing.T) {
	_, addr := serve(t, openStore(t, store.Options{}), session.Options{Access: access("right", false)})
	for _, password := range []string{"", "wrong", "right "} {
		if _, err := client.Dial(t.Context(), "ostro://"+addr, client.Options{Password: password}); err == nil || !strings.Contains(err.Error(), "wrong password") {
			t.Errorf("%q: %v", password, err)
		}
	}
	c := dial(t, "ostro://:right@"+addr, client.Options{})
	run(t, c, story([]byte("story")))
}

// far is a connection that seems to come from another machine.
type far struct{ net.Conn }

func (far) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 7} }

func TestAProtectedServerWithoutAPasswordTakesNobodyFromOutside(t *testing.T) {
	for name, c := range map[string]struct {
		o       session.Options
		refused bool
	}{
		"protected":   {session.Options{Access: access("", true)}, true},
		"unprotected": {session.Options{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			srv, _ := serve(t, openStore(t, store.Options{}), c.o)
			ours, theirs := net.Pipe()
			defer ours.Close()
			go srv.ServeConn(far{theirs})
			if err := greetRaw(ours); (err != nil) != c.refused {
				t.Fatal(err)
			}
		})
	}
}
