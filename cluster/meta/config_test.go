package meta

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostrodb/ostro/internal/port"
)

func TestURLsSayWhereEtcdIs(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	ok(t, os.WriteFile(secret, []byte("pass word\n"), 0o600))
	for url, want := range map[string]Config{
		"etcd://a":                            {Endpoints: []string{"a:2379"}},
		"etcd://a,b:1,[::1],[::1]:5/prod":     {Endpoints: []string{"a:2379", "b:1", "[::1]:2379", "[::1]:5"}, Cluster: "prod"},
		"etcd://a?tls=on":                     {Endpoints: []string{"a:2379"}, TLS: true},
		"etcd://a/?ca=/x&cert=/y&key=/z":      {Endpoints: []string{"a:2379"}, CAFile: "/x", CertFile: "/y", KeyFile: "/z"},
		"etcd://me@a?password-file=" + secret: {Endpoints: []string{"a:2379"}, User: "me", Password: "pass word"},
	} {
		got, err := ParseURL(url)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Config{})); err != nil || diff != "" {
			t.Errorf("%s: %v %s", url, err, diff)
		}
	}
}

func TestURLsThatAreWrongSayWhatToDo(t *testing.T) {
	for url, want := range map[string]string{
		"http://a":                  "does not begin with etcd://",
		"etcd://":                   "a host is empty",
		"etcd://a,,b":               "a host is empty",
		"etcd://a:b:c":              "is no host",
		"etcd://me:secret@a":        "use password-file=FILE",
		"etcd://a?tls=yes":          "tls is on or off",
		"etcd://a?colour=red":       "use tls, ca, cert, key, password-file",
		"etcd://a?cert=x":           "name both files",
		"etcd://a/b/c":              "is no name of a cluster",
		"etcd://a?password-file=/-": "no such file",
		"etcd://a?%":                "invalid URL escape",
	} {
		_, err := ParseURL(url)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestAnEtcdThatDoesNotAnswerIsNamed(t *testing.T) {
	nobody := port.For(t)
	_, err := Open(context.Background(), Config{Endpoints: []string{nobody.Addr()}, DialTimeout: 200 * time.Millisecond, Log: quiet})
	wantError(t, err, "etcd at "+nobody.Addr()+" does not answer: check that it runs")
	_, err = Open(context.Background(), Config{})
	wantError(t, err, "no etcd is named")
	_, err = Open(context.Background(), Config{Endpoints: []string{"a:1"}, CAFile: "/nowhere"})
	wantError(t, err, "read the files for TLS with etcd")
}
