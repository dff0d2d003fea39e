package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// run executes one experiment as the command line would and returns what it
// wrote.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := &cobra.Command{Use: "bench", SilenceErrors: true}
	root.AddCommand(Commands()...)
	var out, progress bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&progress)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run(t, args...)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return out
}

// decoded runs with --json and reads the result into a copy of what.
func decoded[T any](t *testing.T, args ...string) T {
	t.Helper()
	var rep struct {
		Machine Machine `json:"machine"`
		Command string  `json:"command"`
		Results T       `json:"results"`
	}
	out := mustRun(t, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if rep.Machine.Cores == 0 || rep.Command == "" {
		t.Errorf("the report does not say where it was taken:\n%s", out)
	}
	return rep.Results
}

func TestEngineRunsEveryPlaceMixAndBatch(t *testing.T) {
	type result struct {
		Cells []struct {
			Name   string  `json:"name"`
			Mops   float64 `json:"mops"`
			Rounds []engineRound
		} `json:"cells"`
	}
	got := decoded[result](t, "engine", "--records", "40k", "--duration", "4ms", "--dir", t.TempDir(),
		"--workloads", "ycsb-a,ycsb-b,ycsb-c,ycsb-d,ycsb-f,rmw-counter", "--filter", "(8x8|30x100/budget)/.*(zipf|latest)/2w")
	if len(got.Cells) != 3*12+10 {
		t.Errorf("%d cells ran", len(got.Cells))
	}
	cold := 0.0
	for _, c := range got.Cells {
		if c.Mops <= 0 || len(c.Rounds) != 1 {
			t.Errorf("%s: %v Mops/s in %d rounds", c.Name, c.Mops, len(c.Rounds))
		}
		for _, r := range c.Rounds {
			if strings.Contains(c.Name, "/budget/") {
				cold += r.ColdShare
			}
		}
	}
	if cold == 0 {
		t.Error("with a budget below the data nothing was read from disk")
	}
}

func TestEngineListsItsRuns(t *testing.T) {
	out := mustRun(t, "engine", "--list", "--filter", "ycsb-c/8x8/memory/zipf")
	want := "ycsb-c/8x8/memory/zipf/1w/single\nycsb-c/8x8/memory/zipf/2w/single\n"
	if !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 6 {
		t.Errorf("got\n%s", out)
	}
}

func TestEngineWritesATableAndAPlot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.svg")
	out := mustRun(t, "engine", "--records", "1k", "--duration", "4ms", "--filter", "ycsb-c/8x8/memory/zipf/2w", "--plot", file)
	for _, want := range []string{"In memory", "Mops/s", "FASTER", "repeat   ostro", "machine  "} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
	if svg, err := os.ReadFile(file); err != nil || !bytes.Contains(svg, []byte("FASTER")) {
		t.Errorf("the plot: %v\n%s", err, svg)
	}
}

func TestRespComparesAServerOfEachKind(t *testing.T) {
	against := startHere(t)
	got := decoded[respOutcome](t, "resp", "--with-redis", "--redis-program", os.Args[0], "--with-ostro", "--against", "third="+against,
		"--records", "2k", "--duration", "10ms", "--rounds", "2", "--clients", "4", "--pipeline", "1,16", "--distribution", "uniform,zipf",
		"--workloads", "ycsb-a,ycsb-f,rmw-counter")
	if len(got.Targets) != 3 || len(got.Results) != 3*2*2*3 {
		t.Fatalf("%d servers, %d results", len(got.Targets), len(got.Results))
	}
	for _, r := range got.Results {
		if r.rate() <= 0 || len(r.Rounds) != 2 || r.Rounds[0].Latency.P50 <= 0 {
			t.Errorf("%s on %s: %+v", r.respCase, r.Target, r.Rounds)
		}
	}
}

// startHere runs a server for the test, as somebody else's.
func startHere(t *testing.T) string {
	t.Helper()
	l := ostroServer(os.Args[0], []string{"--durability", "none"})
	l.dir = t.TempDir()
	s, err := l.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s.Addr
}

func TestRespDrivesRedisBenchmark(t *testing.T) {
	tool := t.TempDir()
	sample, err := filepath.Abs("testdata/redis-benchmark.out")
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\ncase \"$*\" in *'-c 50 -d 100 -r 2000 -P 16 -n '*) cat '" + sample + "';; *) echo wrong: \"$@\"; exit 1;; esac\n"
	if err := os.WriteFile(filepath.Join(tool, "redis-benchmark"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tool+":"+os.Getenv("PATH"))
	got := decoded[respOutcome](t, "resp", "--with-ostro", "--driver", "redis-benchmark", "--pipeline", "16", "--records", "2k", "--rounds", "1", "--duration", "1s")
	if len(got.Results) != 2 || got.Results[0].rate() != 606060.56 {
		t.Errorf("got %+v", got.Results)
	}
}

func TestMemoryDividesByTheRecords(t *testing.T) {
	got := decoded[memoryOutcome](t, "memory", "--records", "50k", "--with-redis", "--redis-program", os.Args[0], "--with-ostro")
	if len(got.Results) != 2 {
		t.Fatalf("%d servers", len(got.Results))
	}
	for _, r := range got.Results {
		if r.PerRecord < 30 || r.PerRecord > 10_000 {
			t.Errorf("%s takes %.0f B a record", r.Target, r.PerRecord)
		}
	}
}

func TestRecoveryBringsEveryRecordBack(t *testing.T) {
	got := decoded[recoveryOutcome](t, "recovery-local", "--records", "20k", "--rounds", "2", "--checkpoint")
	if len(got.Rounds) != 2 || got.Rounds[1].Keys != 20_000 || got.Rounds[0].Ready <= 0 {
		t.Errorf("got %+v", got)
	}
}

func TestLargerThanMemoryReadsAndWritesEverything(t *testing.T) {
	got := decoded[largerOutcome](t, "larger-than-memory", "--records", "100k", "--duration", "20ms", "--rounds", "1", "--clients", "8")
	if got.DataBytes < 3*got.BudgetBytes || got.Rewrite <= 0 || got.ReadAgain <= 0 || len(got.Cold) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestMistakesAreSaidInOneSentence(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"engine", "--filter", "nothing-like-this"}, "--list shows their names"},
		{[]string{"engine", "--filter", "("}, "--filter"},
		{[]string{"engine", "--workloads", "z"}, `unknown workload "z"`},
		{[]string{"engine", "--records", "many"}, "write it like 500k or 10M"},
		{[]string{"resp"}, "give --with-redis, --with-ostro or --against"},
		{[]string{"resp", "--with-ostro", "--driver", "wrk"}, "neither own nor redis-benchmark"},
		{[]string{"resp", "--with-ostro", "--workloads", "d"}, "only `ostro bench engine` does"},
		{[]string{"resp", "--with-ostro", "--pipeline", "0"}, "must be at least 1"},
		{[]string{"resp", "--with-ostro", "--distribution", "gauss"}, `unknown distribution "gauss"`},
		{[]string{"resp", "--against", "127.0.0.1:1"}, "reach the server at 127.0.0.1:1"},
		{[]string{"memory"}, "give --with-redis, --with-ostro or --against"},
		{[]string{"recovery-local", "--ostro-program", "/bin/false"}, "it ended (exit status 1)"},
		{[]string{"hyperloop", "--fabric", "verbs"}, "neither shm nor tcp"},
		{[]string{"hyperloop", "--modes", "best"}, "use chain, naive-events"},
		{[]string{"hyperloop", "--load", "some"}, "use idle, busy"},
		{[]string{"hyperloop", "--replicas", "8"}, "1 to 7"},
		{[]string{"hyperloop", "--sizes", "4"}, "8 to 65536"},
		{[]string{"hyperloop", "--window", "64", "--slots", "8"}, "--slots at least --window"},
		{[]string{"hyperloop", "--realtime", "1"}, "2 to 99, or 0"},
		{[]string{"shadowfax", "--parts", "all"}, "use sessions, ownership"},
		{[]string{"shadowfax", "--ranges", "4096"}, "at most 2048"},
		{[]string{"shadowfax", "--memory", "2"}, "a share above 0"},
		{[]string{"shadowfax", "--cold", "warm"}, "this version can do"},
		{[]string{"splinter", "--parts", "all"}, "use get, tenants"},
		{[]string{"splinter", "--batch", "500"}, "at most 256"},
		{[]string{"splinter", "--edges", "50"}, "so that a list is one record"},
		{[]string{"splinter", "--loads", "100"}, "1 to 99 percent"},
	} {
		_, err := run(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", strings.Join(c.args, " "), err, c.want)
		}
	}
}

func TestEveryCommandHasExamples(t *testing.T) {
	for _, c := range Commands() {
		if c.Hidden {
			continue // A part of an experiment, in a process of its own.
		}
		if !strings.Contains(c.Example, "ostro bench "+c.Name()) || c.Short == "" || c.Long == "" {
			t.Errorf("%s lacks help", c.Name())
		}
		for _, flag := range []string{"json", "plot"} {
			if c.Flags().Lookup(flag) == nil {
				t.Errorf("%s lacks --%s", c.Name(), flag)
			}
		}
		if c.Flags().Lookup("records") == nil && c.Flags().Lookup("memory") == nil && c.Flags().Lookup("ops") == nil {
			t.Errorf("nobody can say how large %s is", c.Name())
		}
	}
}

func TestFullMemoryOverwritesWhileMostOfItIsAlive(t *testing.T) {
	got := decoded[fullOutcome](t, "full-memory", "--memory", "48", "--duration", "50ms", "--rounds", "1", "--clients", "8")
	if len(got.Servers) != 2 || got.Servers[0].Records >= got.Servers[1].Records {
		t.Fatalf("got %+v", got)
	}
	for _, c := range got.Servers {
		if len(c.Rounds) != 1 || c.Rounds[0].OpsPerSecond <= 0 {
			t.Errorf("with %.0f%% alive: %+v", 100*c.Live, c.Rounds)
		}
	}
	if _, err := run(t, "full-memory", "--live", "1.5"); err == nil {
		t.Error("a share above one was accepted")
	}
}
