//go:build !verbs

package provider_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/provider"
	"github.com/ostrodb/ostro/fabric/shm"
	"github.com/ostrodb/ostro/internal/await"
)

func TestMain(m *testing.M) { os.Exit(await.RunToEnd(m)) }

func secretFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, url, name string, log *slog.Logger) fabric.Device {
	t.Helper()
	d, err := provider.Open(t.Context(), url, provider.Options{Name: name, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestDevicesOfEachSchemeReachEachOther(t *testing.T) {
	e, err := nic.New(nic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	socket := filepath.Join(t.TempDir(), "nic.sock")
	s, err := shm.Serve(socket, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, url := range []string{"inproc:", "inproc:other", "shm://" + socket, "tcp://127.0.0.1:0?secret-file=" + secretFile(t)} {
		t.Run(url, func(t *testing.T) {
			a, b := fabrictest.Pair(t, []fabric.Device{open(t, url, "a", nil), open(t, url, "b", nil)})
			a.Memory().Bytes()[0] = 8
			if c := a.Do(fabric.Write(b.At(0), a.Piece(0, 1))); c.Status != fabric.OK || b.Memory().Bytes()[0] != 8 {
				t.Fatal(c.Status)
			}
		})
	}
}

func TestWhatIsAbsentIsReplacedWithALogLine(t *testing.T) {
	var out bytes.Buffer
	d := open(t, "verbs://mlx5_0,tcp://127.0.0.1:0?secret-file="+secretFile(t), "a", slog.New(slog.NewTextHandler(&out, nil)))
	if !d.Caps().Wait {
		t.Fatal("no device")
	}
	line := strings.SplitN(out.String(), "\n", 2)[0]
	for _, part := range []string{"WARN", "url=verbs://mlx5_0", "next=", "tcp://", "this build has no verbs provider"} {
		if !strings.Contains(line, part) {
			t.Errorf("the line lacks %q: %s", part, line)
		}
	}
}

func TestBadURLsSayWhatToDo(t *testing.T) {
	for url, want := range map[string]string{
		"verbs://x":                              "no verbs provider",
		"rdma://x":                               "use inproc:NAME, shm:///path or tcp://host:port",
		"shm://host":                             "use shm:///path",
		"shm:///nowhere/n.sock":                  "attach to the NIC at /nowhere/n.sock",
		"tcp://127.0.0.1:0":                      "needs a secret",
		"tcp://127.0.0.1:0?secret-file=/nowhere": "read the secret",
		"rdma://x,verbs://y":                     "no verbs provider",
		"%":                                      "fabric",
	} {
		_, err := provider.Open(t.Context(), url, provider.Options{Name: "a"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
	if _, err := provider.Open(t.Context(), "verbs://x", provider.Options{Name: "a"}); !errors.Is(err, fabric.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
	if _, err := provider.Open(t.Context(), "inproc:", provider.Options{}); err == nil {
		t.Error("a device without a name was opened")
	}
}
