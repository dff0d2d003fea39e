package cloud_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/ostrodb/ostro/internal/port"
)

// server is an S3 server in a process of its own, over a directory that outlives it.
type server struct {
	binary, dir string
	address     string
	cmd         *exec.Cmd
}

// buildServer builds the S3 server from tools/go.mod; without it there is no test.
func buildServer(t *testing.T) (binary string) {
	t.Helper()
	began := time.Now()
	_, here, _, _ := runtime.Caller(0)
	binary = filepath.Join(t.TempDir(), "s3server")
	build := exec.Command("go", "build", "-modfile=tools/go.mod", "-ldflags=-s -w", "-o", binary, "./engine/device/cloud/testdata/s3server")
	build.Dir = filepath.Join(filepath.Dir(here), "..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the S3 server: %v\n%s", err, out)
	}
	t.Logf("the S3 server was built in %v", time.Since(began).Round(time.Second))
	return binary
}

// startServer serves one bucket named "ostro" and sets the credentials for it.
func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{binary: buildServer(t), dir: t.TempDir(), address: port.For(t).Addr()}
	t.Setenv("AWS_ACCESS_KEY_ID", "ostro-test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "ostro-test-secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	must(t, os.Mkdir(filepath.Join(s.dir, "ostro"), 0o755))
	must(t, s.start())
	t.Cleanup(s.kill)
	return s
}

// start begins to serve, at the same address as before.
func (s *server) start() error {
	var log bytes.Buffer
	s.cmd = exec.Command(s.binary, s.address, s.dir)
	s.cmd.Stdout, s.cmd.Stderr = &log, &log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !s.answers() {
		select {
		case <-tick.C:
		case <-deadline:
			s.kill()
			return fmt.Errorf("the S3 server does not answer:\n%s", &log)
		}
	}
	return nil
}

// answers tells whether anything speaks HTTP at the address.
func (s *server) answers() bool {
	request, _ := http.NewRequest(http.MethodGet, "http://"+s.address+"/", nil)
	request.Close = true
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return true
}

// kill is kill -9; it returns when the process is gone.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// url is that of the bucket, through another address if one is given.
func (s *server) url(address string) string {
	return fmt.Sprintf("s3://ostro/some/prefix?region=us-east-1&use_path_style=true&endpoint=http://%s", address)
}
