package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
)

// identity is a certificate that signs itself, on disk and in memory.
type identity struct {
	certFile, keyFile string
	cert              tls.Certificate
	pool              *x509.CertPool
}

func newIdentity(t *testing.T) *identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ostro"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	id := &identity{certFile: filepath.Join(dir, "cert.pem"), keyFile: filepath.Join(dir, "key.pem"), pool: x509.NewCertPool()}
	writePEM(t, id.certFile, "CERTIFICATE", der)
	writePEM(t, id.keyFile, "PRIVATE KEY", keyDER)
	if id.cert, err = tls.LoadX509KeyPair(id.certFile, id.keyFile); err != nil {
		t.Fatal(err)
	}
	id.pool.AddCert(id.cert.Leaf)
	return id
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func startTLS(t *testing.T, id *identity, auth redis.ClientAuth) *redis.Server {
	t.Helper()
	return startServer(t, store.Options{}, redis.Config{
		Binds: []string{"127.0.0.1"},
		TLS:   redis.TLSConfig{Port: redis.PortAny, CertFile: id.certFile, KeyFile: id.keyFile, CAFile: id.certFile, ClientAuth: auth},
	})
}

func dialTLS(t *testing.T, srv *redis.Server, cfg *tls.Config) net.Conn {
	t.Helper()
	cfg.ServerName = "127.0.0.1"
	return tls.Client(dial(t, "tcp", srv.TLSAddr().String()), cfg)
}

func TestTLSClientsAreServedLikeOthers(t *testing.T) {
	id := newIdentity(t)
	srv := startTLS(t, id, redis.ClientAuthNo)
	var wg sync.WaitGroup
	for i := range 8 {
		c := dialTLS(t, srv, &tls.Config{RootCAs: id.pool})
		wg.Go(func() {
			value := strings.Repeat(fmt.Sprint(i), 100_000)
			for range 20 {
				sendTo(t, c, bulk("SET", fmt.Sprint("k", i), value), bulk("GET", fmt.Sprint("k", i)), bulk("PING"))
				expect(t, c, "+OK\r\n$100000\r\n"+value+"\r\n+PONG\r\n")
			}
			sendTo(t, c, bulk("QUIT"))
			if got := expectEnd(t, c); got != "+OK\r\n" {
				t.Errorf("got %q", got)
			}
		})
	}
	wg.Wait()
	await.True(t, "all clients are gone", func() bool { return srv.Metrics().Clients == 0 })
}

func TestTLSClientsMustShowACertificateWhenAsked(t *testing.T) {
	id, stranger := newIdentity(t), newIdentity(t)
	srv := startTLS(t, id, redis.ClientAuthYes)
	known := dialTLS(t, srv, &tls.Config{RootCAs: id.pool, Certificates: []tls.Certificate{id.cert}})
	sendTo(t, known, bulk("PING"))
	expect(t, known, "+PONG\r\n")
	for _, certs := range [][]tls.Certificate{nil, {stranger.cert}} {
		c := dialTLS(t, srv, &tls.Config{RootCAs: id.pool, Certificates: certs})
		_, _ = c.Write([]byte(bulk("PING"))) // The refusal may come before or after it.
		if n, err := c.Read(make([]byte, 100)); err == nil {
			t.Errorf("a client without a good certificate got %d bytes", n)
		}
	}
}

func TestATLSClientThatIsClosedAndReadsNothingGoes(t *testing.T) {
	id := newIdentity(t)
	srv := startTLS(t, id, redis.ClientAuthNo)
	srv.LingerTLS(10 * time.Millisecond)
	c := dialTLS(t, srv, &tls.Config{RootCAs: id.pool})
	sendTo(t, c, bulk("SET", "k", strings.Repeat("x", 1<<20)))
	expect(t, c, "+OK\r\n")
	sendTo(t, c, strings.Repeat(bulk("GET", "k"), 40), bulk("QUIT"))
	boss := dialRaw(t, srv.Addr().String())
	await.True(t, "much waits for the client", func() bool {
		r, err := boss.do("client", "list", "type", "normal")
		return err == nil && strings.Contains(r.text, "cmd=quit")
	})
	if _, err := boss.do("client", "kill", "type", "normal", "skipme", "yes"); err != nil {
		t.Fatal(err)
	}
	await.True(t, "its connection is gone", func() bool { return srv.OpenTLS() == 0 })
}

func TestATLSClientThatReadsNothingHoldsUpNobodyElse(t *testing.T) {
	id := newIdentity(t)
	srv := startTLS(t, id, redis.ClientAuthNo)
	slow, other := dialTLS(t, srv, &tls.Config{RootCAs: id.pool}), dialTLS(t, srv, &tls.Config{RootCAs: id.pool})
	value := strings.Repeat("x", 1<<20)
	sendTo(t, slow, bulk("SET", "k", value))
	expect(t, slow, "+OK\r\n")
	sendTo(t, slow, strings.Repeat(bulk("GET", "k"), 20))
	sendTo(t, other, bulk("PING"))
	expect(t, other, "+PONG\r\n")
	for range 20 {
		expect(t, slow, "$1048576\r\n"+value+"\r\n")
	}
	sendTo(t, slow, strings.Repeat(bulk("GET", "k"), 20))
	if err := slow.Close(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "it is gone", func() bool { return srv.Metrics().Clients == 1 })
}

func TestATLSClientMaySendAndEndAtOnce(t *testing.T) {
	id := newIdentity(t)
	srv := startTLS(t, id, redis.ClientAuthNo)
	for _, gets := range []int{0, 1, 3, 6000} { // the last: more than one read takes, less than the pipe
		c := dialTLS(t, srv, &tls.Config{RootCAs: id.pool}).(*tls.Conn)
		sendTo(t, c, bulk("SET", "k", "value"))
		expect(t, c, "+OK\r\n")
		release := srv.HoldLoop(0)
		sendTo(t, c, strings.Repeat(bulk("GET", "k"), gets))
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		await.True(t, "the loop is told of input and of its end", func() bool { return srv.Posted(0) >= min(1+gets, 2) })
		release()
		if got, want := expectEnd(t, c), strings.Repeat("$5\r\nvalue\r\n", gets); got != want {
			t.Fatalf("%d requests: got %d bytes, want %d", gets, len(got), len(want))
		}
	}
}

func TestTLSConnectionsMoveBetweenLoops(t *testing.T) {
	id := newIdentity(t)
	srv := startServer(t, store.Options{}, redis.Config{
		Loops: 2, Binds: []string{"127.0.0.1"},
		TLS: redis.TLSConfig{Port: redis.PortAny, CertFile: id.certFile, KeyFile: id.keyFile, ClientAuth: redis.ClientAuthNo},
	})
	var wg sync.WaitGroup
	for i := range 4 {
		c := dialTLS(t, srv, &tls.Config{RootCAs: id.pool})
		wg.Go(func() {
			for n := 1; n < 300; n++ {
				srv.ShuffleConnections()
				sendTo(t, c, bulk("INCR", fmt.Sprint("k", i)))
				expect(t, c, fmt.Sprintf(":%d\r\n", n))
			}
		})
	}
	wg.Wait()
}

func TestShutdownClosesTLSClients(t *testing.T) {
	id := newIdentity(t)
	srv := startTLS(t, id, redis.ClientAuthNo)
	c := dialTLS(t, srv, &tls.Config{RootCAs: id.pool})
	sendTo(t, c, bulk("PING"))
	expect(t, c, "+PONG\r\n")
	shutdownNow(t, srv)
	if got := expectEnd(t, c); got != "" {
		t.Fatalf("got %q", got)
	}
}
