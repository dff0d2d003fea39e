package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/test/harness"
)

// smallest is the benchmark as short as it gets, with nothing left out, at no
// priority that could keep other tests waiting.
var smallest = []string{
	"bench", "hyperloop", "--replicas", "2,3", "--sizes", "64", "--busy", "1", "--realtime", "0",
	"--ops", "10", "--duration", "20ms", "--rounds", "1", "--window", "4", "--slots", "8",
}

type hyperloopReport struct {
	Experiment, Claim, Command string
	Results                    struct {
		Fabric string
		Modes  []string
		Cells  []hyperloopCell
	}
}

type hyperloopCell struct {
	Primitive, Mode, Load string
	Bytes, Replicas       int
	Operations            uint64
	OpsPerSecond          float64 `json:"ops_per_second"`
	NICCPU                float64 `json:"nic_cpu_ns_per_op"`
	Latency               map[string]int64
	Rounds                []map[string]any
}

func TestTheHyperloopBenchmarkReportsEveryCaseInEveryMode(t *testing.T) {
	for _, fabric := range []string{"shm", "tcp"} {
		t.Run(fabric, func(t *testing.T) {
			plot := filepath.Join(t.TempDir(), "plot.svg")
			out := run(t, "", append(smallest, "--fabric", fabric, "--json", "--plot", plot)...)
			out.wants(t, 0)
			var rep hyperloopReport
			if err := json.Unmarshal([]byte(out.stdout), &rep); err != nil {
				t.Fatalf("%v in %s", err, out.stdout)
			}
			if rep.Experiment != "hyperloop" || rep.Claim == "" || rep.Command == "" || rep.Results.Fabric != fabric {
				t.Errorf("the report does not say what it is of: %+v", rep)
			}
			missing := map[string]bool{}
			for _, load := range []string{"idle", "busy"} {
				for _, mode := range []string{"chain", "naive-events", "naive-polling"} {
					for _, what := range []string{
						"gWRITE 2", "gWRITE 3", "gMEMCPY 2", "gCAS 2", "Append 2", "transaction 2", "throughput 2",
					} {
						missing[what+" "+mode+" "+load] = true
					}
				}
			}
			for _, c := range rep.Results.Cells {
				delete(missing, fmt.Sprintf("%s %d %s %s", c.Primitive, c.Replicas, c.Mode, c.Load))
				c.wantComplete(t)
			}
			if len(missing) > 0 || len(rep.Results.Cells) != 42 {
				t.Errorf("%d cells; missing: %v", len(rep.Results.Cells), missing)
			}
			if svg, err := os.ReadFile(plot); err != nil || !strings.Contains(string(svg), "p99 of group operations") {
				t.Errorf("no plot: %v", err)
			}
		})
	}
}

func (c hyperloopCell) wantComplete(t *testing.T) {
	t.Helper()
	if c.Operations == 0 || c.OpsPerSecond <= 0 || c.NICCPU <= 0 || len(c.Rounds) != 1 || c.Bytes == 0 {
		t.Errorf("incomplete: %+v", c)
	}
	for _, name := range []string{"mean_ns", "p50_ns", "p95_ns", "p99_ns", "p999_ns", "max_ns"} {
		if (c.Latency[name] > 0) == (c.Primitive == "throughput") {
			t.Errorf("%s of %s by %s is %d", name, c.Primitive, c.Mode, c.Latency[name])
		}
	}
}

func TestAKilledHyperloopBenchmarkLeavesNoProcess(t *testing.T) {
	cmd := exec.Command(binary, append(smallest, "--ops", "1000000", "--duration", "1h")...)
	left, err := os.MkdirTemp("", "e2e-") // t.TempDir's name would be too long for sockets.
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(left)
	cmd.Env = append(os.Environ(), "TMPDIR="+left)
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for line := bufio.NewScanner(said); line.Scan() && !strings.Contains(line.Text(), "round 1"); {
	}
	children := childrenOf(t, cmd.Process.Pid)
	if want := 3 + 1 + runtime.NumCPU(); len(children) != want {
		t.Fatalf("%d processes were started, want %d: replicas, a NIC, busy ones", len(children), want)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(harness.Patience); len(children) > 0; {
		if gone(children[0]) {
			children = children[1:]
		} else if time.Now().After(deadline) {
			t.Fatalf("processes %v live on", children)
		}
		runtime.Gosched()
	}
}

// gone tells whether a process has ended, also if nobody has asked how.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " Z")
}

// childrenOf lists the processes that a process has started.
func childrenOf(t *testing.T, pid int) (children []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(lists) == 0 {
		t.Skipf("this system does not tell children: %v", err)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list) // A thread may have ended.
		for _, word := range strings.Fields(string(text)) {
			var child int
			if _, err := fmt.Sscan(word, &child); err != nil {
				t.Fatal(err)
			}
			children = append(children, child)
		}
	}
	return children
}
