package e2e

import (
	"bufio"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// daemon is a running `ostro nic` or `ostro replica`.
type daemon struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *bufio.Reader
	said strings.Builder
}

// startDaemon returns when the process serves.
func startDaemon(t *testing.T, args ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, cmd: exec.Command(binary, args...)}
	pipe, err := d.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.log = bufio.NewReader(pipe)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
	})
	d.until("msg=serving")
	return d
}

// until reads the log up to a line with a part.
func (d *daemon) until(part string) {
	d.t.Helper()
	for {
		line, err := d.log.ReadString('\n')
		d.said.WriteString(line)
		if strings.Contains(line, part) {
			return
		}
		if err != nil {
			d.t.Fatalf("the process never said %q: %v\n%s", part, err, d.said.String())
		}
	}
}

// field is a value of the log so far.
func (d *daemon) field(name string) string {
	d.t.Helper()
	found := regexp.MustCompile(`\b` + name + `=(\S+)`).FindStringSubmatch(d.said.String())
	if found == nil {
		d.t.Fatalf("the log has no %s:\n%s", name, d.said.String())
	}
	return strings.Trim(found[1], `"`)
}

// end stops the process as an operator does.
func (d *daemon) end() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	d.until("msg=stopping")
	_, _ = io.Copy(&d.said, d.log)
	if err := d.cmd.Wait(); err != nil {
		d.t.Fatalf("the process ended with %v:\n%s", err, d.said.String())
	}
}

// page is what the admin port says at a path.
func (d *daemon) page(path string) string {
	d.t.Helper()
	r, err := http.Get("http://" + d.field("admin") + path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		d.t.Fatalf("%s: %s %v %s", path, r.Status, err, body)
	}
	return string(body)
}
