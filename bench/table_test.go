package bench

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what its golden file holds; got\n%s\nwant\n%s", name, got, want)
	}
}

func sampleLatency(us int) workload.Summary {
	d := time.Duration(us) * time.Microsecond
	return workload.Summary{P50: d, P99: 3 * d, P999: 10 * d, Max: 100 * d}
}

func sampleResp() *respOutcome {
	o := &respOutcome{
		Targets: []*target{{Name: "redis", Version: "redis 7.0.15"}, {Name: "ostro", Version: "ostro 0.1.0"}},
		Driver:  "own", Clients: 50, Records: 1e6, KeyBytes: 30, ValueBytes: 100, RoundSeconds: 3,
	}
	for i, pipeline := range []int{1, 16} {
		c := respCase{"GET", "uniform", pipeline, workload.YCSBC, workload.Uniform}
		for j, name := range []string{"redis", "ostro"} {
			base := 50_000 * float64(1+4*i) * float64(1+j)
			o.Results = append(o.Results, respResult{c, name, []respRound{
				{base, sampleLatency(100), 2400 / float64(1+j), 0, 0.5},
				{base * 1.1, sampleLatency(110), 2500 / float64(1+j), 0, 0.5},
				{base * 0.9, sampleLatency(90), 2300 / float64(1+j), 0, 0.5},
			}})
		}
	}
	return o
}

func sampleEngine() *engineOutcome {
	s := shape{workload.Binary8, 8}
	round := engineRound{Mops: 12.5, CPUPerOp: 160, Latency: sampleLatency(1), LongestGC: 40 * time.Microsecond}
	return &engineOutcome{Records: 10e6, RoundSeconds: 2, ClockNanos: 40, Results: []engineResult{
		{cell{workload.YCSBC, s, inMemory, workload.Zipfian, 2, 32}, 52.4, []engineRound{round}},
		{cell{workload.YCSBA, s, inMemory, workload.Uniform, 1, 1}, 52.4, []engineRound{round}},
		{cell{workload.YCSBC, s, onBudget, workload.Uniform, 1, 1}, 15, []engineRound{{Mops: 0.4, ColdShare: 0.75}}},
	}}
}

func sampleReport(name string) Report {
	return Report{
		Experiment: name, Claim: "it is fast",
		Machine: Machine{"Some CPU", 2, 24 << 30, "6.1", "go1.26", "0123456789ab"},
		Command: "ostro bench " + name, Started: time.Now(),
		Company: Company{Others: 0.02, Stolen: 0.01, Pace: [2]float64{700e6, 690e6}},
	}
}

func TestReportsMatchTheirGoldenFiles(t *testing.T) {
	for name, o := range map[string]outcome{
		"engine": sampleEngine(),
		"resp":   sampleResp(),
		"memory": &memoryOutcome{Records: 1e6, KeyBytes: 30, ValueBytes: 100, Results: []memoryResult{
			{"redis", "redis 7.0.15", resident{Total: 10 << 20}, resident{Total: 225 << 20}, 215},
			{"ostro", "ostro 0.1.0", resident{Total: 20 << 20}, resident{Total: 200 << 20, File: 100 << 20}, 180},
		}},
		"recovery": &recoveryOutcome{Records: 1e6, RecordBytes: 130, DiskBytes: 160e6, LoadRate: 8e5, Rounds: []recoveryRound{
			{Ready: 700 * time.Millisecond, CPU: 1200 * time.Millisecond, Keys: 1e6, ReadBack: 2 * time.Second},
		}},
		"larger": &largerOutcome{
			Records: 1e6, RecordBytes: 130, DataBytes: 160e6, BudgetBytes: 40e6, DiskBytes: 170e6,
			Resident: resident{Total: 60e6}, HotWhole: []respRound{{OpsPerSecond: 5e5, ServerCPU: 900}}, HotPart: []respRound{{OpsPerSecond: 49e4, ServerCPU: 910}},
			Cold: []respRound{{OpsPerSecond: 5e4, ServerCPU: 5000}}, Rewrite: 6e5, ReadBack: 2e5, Ready: time.Second, ReadAgain: 1e5,
		},
	} {
		var b bytes.Buffer
		if err := emit(&b, sampleReport(name), o, commonFlags{}); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", b.Bytes())
		golden(t, name+".svg", o.chart("2 cores"))
	}
}

func TestAChartTakenInCompanySaysSo(t *testing.T) {
	r := sampleReport("engine")
	if strings.Contains(r.where(), "others") {
		t.Errorf("3%% are not much: %s", r.where())
	}
	r.Company.Others = 0.6
	if !strings.HasSuffix(r.where(), "; others took 61% of the cores") {
		t.Errorf("got %s", r.where())
	}
}

func TestFiguresThatAreNotKnownAreDashes(t *testing.T) {
	nan := math.NaN()
	for _, s := range []string{decimals(nan, 2), times(nan), times(math.Inf(1)), rate(nan), short(0)} {
		if s != "-" {
			t.Errorf("wrote %q", s)
		}
	}
}

func TestFiguresAreShort(t *testing.T) {
	for got, want := range map[string]string{
		short(950 * time.Nanosecond):          "950 ns",
		short(1234 * time.Nanosecond):         "1.23 µs",
		short(12345 * time.Microsecond):       "12.3 ms",
		short(123 * time.Second):              "123 s",
		grouped(-1234567):                     "-1,234,567",
		grouped(999):                          "999",
		bytesShort(999):                       "999 B",
		bytesShort(1536 << 10):                "1.50 MiB",
		commandLine([]string{"x", "a b", ""}): "ostro 'a b' ''",
		commandLine([]string{"x", "it's"}):    `ostro 'it'\''s'`,
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestTheMachineIsNamed(t *testing.T) {
	m := thisMachine()
	if m.Cores < 1 || m.MemoryBytes < 1<<20 || m.Kernel == "" || m.CPU == "" || !strings.HasPrefix(m.Go, "go") {
		t.Errorf("got %+v", m)
	}
}
