package replica

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric/fabrictest"
)

// fabrics are what batches travel over.
var fabrics = []struct {
	name, url string
	mode      Mode
}{
	{"inproc", "inproc:bench", OneSided},
	{"shm", "shm", OneSided},
	{"tcp", "tcp://127.0.0.1:0", OneSided},
	{"rpc", "", RPC},
}

// benchCluster starts a primary with two backups.
func benchCluster(b *testing.B, url string, mode Mode) (w *writer, cpu func(n int)) {
	const bytes = record.MaxSegmentBytes
	var c *cluster
	var children []*fabrictest.Process
	if url == "inproc:bench" {
		c = newCluster(b, 2, 2, bytes)
	} else {
		c, children = processCluster(b, url, 2, 2, bytes)
	}
	w = newWriter(b, bytes)
	o := c.options(2)
	o.Mode = mode
	o.HealthEvery = time.Hour
	c.primary(w, o)
	return w, func(n int) { reportCPU(b, n, children) }
}

// reportCPU tells what a batch costs: this process, and the others together. It does not
// depend on who else uses the machine. Call it first with n 0.
func reportCPU(b *testing.B, n int, children []*fabrictest.Process) {
	own, others := cpuOf(b, os.Getpid()), time.Duration(0)
	for _, p := range children {
		others += cpuOf(b, p.Cmd.Process.Pid)
	}
	if n > 0 {
		b.ReportMetric(float64(own-cpuBefore[0])/float64(n), "own-cpu-ns/op")
		b.ReportMetric(float64(others-cpuBefore[1])/float64(n), "others-cpu-ns/op")
	}
	cpuBefore = [2]time.Duration{own, others}
}

var cpuBefore [2]time.Duration

// cpuOf is the time that a process has computed.
func cpuOf(b *testing.B, pid int) time.Duration {
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		b.Fatal(err)
	}
	var sum time.Duration
	for _, path := range all {
		var ns time.Duration
		if text, err := os.ReadFile(path); err == nil {
			_, _ = fmt.Sscan(string(text), &ns)
		}
		sum += ns
	}
	return sum
}

// BenchmarkBatches is how many batches of one small record a second get into two copies, with
// so many unacknowledged at a time.
func BenchmarkBatches(b *testing.B) {
	for _, f := range fabrics {
		for _, pending := range []int{1, 16, 64, 1024} {
			b.Run(fmt.Sprintf("%s/pending=%d", f.name, pending), func(b *testing.B) {
				w, cpu := benchCluster(b, f.url, f.mode)
				h := w.head()
				var n record.BatchID
				cpu(0)
				for b.Loop() {
					n = h.write(1, 100)
					if n > record.BatchID(pending) {
						w.await(n - record.BatchID(pending) + 1)
					}
				}
				w.await(n)
				cpu(b.N)
			})
		}
	}
}

// BenchmarkSealed is what a worker pays for a batch.
func BenchmarkSealed(b *testing.B) {
	for _, f := range fabrics {
		b.Run(f.name, func(b *testing.B) {
			w, _ := benchCluster(b, f.url, f.mode)
			var h *head
			full := true
			b.ReportAllocs()
			for b.Loop() {
				if full {
					b.StopTimer()
					h = w.head()
					b.StartTimer()
				}
				full = !h.blank()
			}
		})
	}
}

// blank appends a batch of one void, and tells whether there is room for more.
func (h *head) blank() bool {
	const bytes = 160
	e := h.mem[h.off:]
	record.EncodeVoid(e, bytes)
	h.off += bytes
	h.chain.Add(record.PtrOf(e))
	h.seal(false)
	return int(h.off)+4*bytes < len(h.mem)
}
