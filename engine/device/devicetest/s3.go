package devicetest

import (
	"bytes"
	"errors"
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

// S3 is an S3 server in a process of its own, over a directory that outlives it.
type S3 struct {
	binary, dir string
	Address     string
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

// StartS3 serves one bucket named "ostro" and sets the credentials for it.
func StartS3(t *testing.T) *S3 {
	t.Helper()
	s := &S3{binary: buildServer(t), dir: t.TempDir(), Address: port.For(t).Addr()}
	t.Setenv("AWS_ACCESS_KEY_ID", "ostro-test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "ostro-test-secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	if err := errors.Join(os.Mkdir(filepath.Join(s.dir, "ostro"), 0o755), s.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Start begins to serve, at the same address as before.
func (s *S3) Start() error {
	var log bytes.Buffer
	s.cmd = exec.Command(s.binary, s.Address, s.dir)
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
			s.Kill()
			return fmt.Errorf("the S3 server does not answer:\n%s", &log)
		}
	}
	return nil
}

// answers tells whether anything speaks HTTP at the address.
func (s *S3) answers() bool {
	request, _ := http.NewRequest(http.MethodGet, "http://"+s.Address+"/", nil)
	request.Close = true
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return true
}

// Kill is kill -9; it returns when the process is gone.
func (s *S3) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Dir is where it keeps the objects of URL, as files.
func (s *S3) Dir() string { return filepath.Join(s.dir, "ostro", "some", "prefix") }

// URL is that of the bucket, through another address if one is given.
func (s *S3) URL(address string) string {
	return fmt.Sprintf("s3://ostro/some/prefix?region=us-east-1&use_path_style=true&endpoint=http://%s", address)
}
