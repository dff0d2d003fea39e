package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/test/harness"
)

// busy counts one key up, again and again, until stop, which returns how often it was acknowledged.
func (d *devCluster) busy(key string) (stop func() int64) {
	c := d.client()
	var acknowledged atomic.Int64
	ended, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-ended:
				done <- nil
				return
			default:
			}
			if err := c.Incr(d.t.Context(), key).Err(); err != nil {
				done <- err
				return
			}
			acknowledged.Add(1)
		}
	}()
	return func() int64 {
		d.t.Helper()
		close(ended)
		if err := <-done; err != nil {
			d.t.Fatalf("a client got an error while keys moved: %v", err)
		}
		return acknowledged.Load()
	}
}

func TestKeysMoveWhileClientsUseThem(t *testing.T) {
	d := newDevCluster(t)
	d.start("--nodes", "3", "--lease", "30s")
	const keys = 300
	d.write(keys)
	stops := []func() int64{}
	for i := range 3 {
		stops = append(stops, d.busy(fmt.Sprint("counter:", i)))
	}
	var m struct {
		Stage          string
		Source, Target string
		Records        int64
	}
	o := run(t, "", "migrate", "--from", "node1", "--to", "node2", "--fraction", "0.5", "--json", "--baseline", "0", "--dir", d.dir)
	o.wants(t, 0)
	if err := json.Unmarshal([]byte(o.stdout), &m); err != nil || m.Stage != "done" || m.Source != "node1" || m.Target != "node2" || m.Records == 0 {
		t.Fatalf("%+v, %v: %s", m, err, o.stdout)
	}
	run(t, "", "migrate", "--from", "node2", "--to", "node3", "--slots", "16000", "--dir", d.dir).wants(t, 2, "node2 does not own slot 16000: node3 does")
	run(t, "", "migrate", "--from", "node3", "--to", "node1", "--slots", "16000-16383", "--baseline", "0", "--dir", d.dir).wants(t, 0, "is done: 384 slots (16000-16383) went from node3 to node1")
	run(t, "", "migrate", "list", "--dir", d.dir).wants(t, 0, "node1", "16000-16383", "done")
	run(t, "", "cluster", "status", "--dir", d.dir).wants(t, 0, "MIGRATION")
	d.reshard()
	for i, stop := range stops {
		want := stop()
		got, err := d.client().Get(t.Context(), fmt.Sprint("counter:", i)).Int64()
		if err != nil || got != want {
			t.Fatalf("counter %d was counted up %d times and is %d, %v", i, want, got, err)
		}
	}
	d.holds(keys)
}

// reshard moves slots with Redis' own tool.
func (d *devCluster) reshard() {
	d.t.Helper()
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		d.t.Fatal("this test uses redis-cli: install the package redis-tools")
	}
	at := d.ready.Nodes[0].Redis
	id := func(n int) string {
		host, port, _ := strings.Cut(d.ready.Nodes[n].Redis, ":")
		return strings.TrimSpace(runProgram(d.t, "", cli, "-h", host, "-p", port, "cluster", "myid").stdout)
	}
	runProgram(d.t, "", cli, "--cluster", "reshard", at, "--cluster-from", id(2), "--cluster-to", id(0), "--cluster-slots", "30", "--cluster-yes").wants(d.t, 0)
	err = harness.Eventually("redis-cli finds the slots where they went", func() error {
		o := runProgram(d.t, "", cli, "--cluster", "check", at)
		if o.code != 0 || !strings.Contains(o.stdout, "All 16384 slots covered") || strings.Contains(o.stdout, "[WARNING]") {
			return fmt.Errorf("exit %d: %s", o.code, o.stdout)
		}
		list := run(d.t, "", "migrate", "list", "--dir", d.dir).stdout
		if n := strings.Count(list, "a Redis client moves slots"); n != strings.Count(list, "done")-2 || n == 0 {
			return fmt.Errorf("migrations: %s", list)
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
}
