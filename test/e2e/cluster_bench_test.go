package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// benchmark runs an experiment and reads its report's results.
func benchmark(t *testing.T, into any, args ...string) {
	t.Helper()
	out := run(t, "", append(args, "--json")...)
	out.wants(t, 0)
	rep := struct{ Results any }{into}
	if err := json.Unmarshal([]byte(out.stdout), &rep); err != nil {
		t.Fatalf("%v in %s", err, out.stdout)
	}
}

func TestTheTailwindBenchmarkReportsEveryCaseInEveryMode(t *testing.T) {
	type cell struct {
		Mode   string
		Rounds []struct {
			Rate float64 `json:"ops_per_second_per_primary"`
			Put  struct {
				P50 int64 `json:"p50_ns"`
			}
		}
	}
	var results struct{ Cells, Paced []cell }
	benchmark(t, &results, "bench", "tailwind", "--nodes", "3", "--modes", "shm,rpc", "--writes", "50,100", "--clients", "2",
		"--primaries", "1,3", "--loads", "50", "--records", "500", "--duration", "100ms", "--rounds", "1")
	if len(results.Cells) != 8 || len(results.Paced) != 8 {
		t.Fatalf("%d cells and %d at fixed rates", len(results.Cells), len(results.Paced))
	}
	for _, c := range append(results.Cells, results.Paced...) {
		if len(c.Rounds) != 1 || c.Rounds[0].Rate <= 0 || c.Rounds[0].Put.P50 <= 0 {
			t.Errorf("incomplete: %+v", c)
		}
	}
}

func TestTheRecoveryBenchmarkReadsBackAllThatADeadNodeHad(t *testing.T) {
	var results struct {
		Rounds []struct {
			Records    int
			DetectedNS int64 `json:"detected_ns"`
			PlannedNS  int64 `json:"planned_ns"`
			ServedNS   int64 `json:"served_ns"`
			AnsweredNS int64 `json:"answered_ns"`
		}
	}
	benchmark(t, &results, "bench", "recovery", "--nodes", "3", "--records", "2k", "--modes", "shm")
	if len(results.Rounds) != 1 {
		t.Fatalf("got %+v", results)
	}
	if r := results.Rounds[0]; r.Records != 2000 || r.DetectedNS <= 0 || r.PlannedNS < r.DetectedNS || r.ServedNS < r.PlannedNS || r.AnsweredNS <= 0 {
		t.Errorf("the steps do not follow each other: %+v", r)
	}
}

func TestTheRESPBenchmarkComparesReplicatedServers(t *testing.T) {
	var results struct {
		Cluster bool
		Cases   []struct {
			Target string
			Rounds []struct {
				Rate   float64 `json:"ops_per_second"`
				Backup float64 `json:"backup_cpu_ns_per_op"`
			}
		}
	}
	benchmark(t, &results, "bench", "resp", "--cluster", "--with-redis", "--with-ostro", "--workloads", "writes", "--pipeline", "4",
		"--clients", "2", "--records", "500", "--duration", "200ms", "--rounds", "1")
	if !results.Cluster || len(results.Cases) != 2 || results.Cases[0].Target != "redis, WAIT 2" || results.Cases[1].Target != "ostro" {
		t.Fatalf("got %+v", results)
	}
	for _, c := range results.Cases {
		if len(c.Rounds) != 1 || c.Rounds[0].Rate <= 0 || c.Rounds[0].Backup <= 0 {
			t.Errorf("incomplete: %+v", c)
		}
	}
}

// scaleout is a part of the hash space that moves to an idle node.
type scaleout struct {
	Case   string
	Moved  int     `json:"records_moved"`
	Cold   int     `json:"records_that_follow"`
	Took   int64   `json:"took_ns"`
	Share  float64 `json:"share"`
	Series []struct {
		Source float64 `json:"source_ops_per_second"`
		Target float64 `json:"target_ops_per_second"`
	}
}

func (m scaleout) check(t *testing.T) {
	t.Helper()
	if m.Moved+m.Cold == 0 || m.Took <= 0 || m.Share <= 0 || len(m.Series) == 0 {
		t.Errorf("%s: %+v", m.Case, m)
	}
}

func TestTheShadowfaxBenchmarkMeasuresAllItsParts(t *testing.T) {
	type rounds []struct {
		Rate float64 `json:"ops_per_second"`
		CPU  float64 `json:"server_cpu_ns_per_op"`
	}
	var results struct {
		Sessions  []struct{ Rounds rounds }
		Ownership []struct {
			Ranges int
			Check  string
			Rounds rounds
		}
		Memory               []struct{ Rounds rounds }
		Scaleout, Compaction []scaleout
	}
	benchmark(t, &results, "bench", "shadowfax", "--records", "2k", "--duration", "20ms", "--rounds", "1", "--threads", "2", "--batches", "1,16",
		"--ranges", "1,2048", "--memory", "0.5", "--cold=", "--clients", "16", "--calm", "300ms", "--after", "300ms")
	if len(results.Sessions) != 2 || len(results.Ownership) != 6 || len(results.Memory) != 2 || len(results.Scaleout) != 1 || len(results.Compaction) != 1 {
		t.Fatalf("incomplete: %+v", results)
	}
	cells := []rounds{}
	for _, c := range results.Sessions {
		cells = append(cells, c.Rounds)
	}
	for _, c := range results.Memory {
		cells = append(cells, c.Rounds)
	}
	for _, c := range results.Ownership {
		cells = append(cells, c.Rounds)
	}
	for i, c := range cells {
		if len(c) != 1 || c[0].Rate <= 0 || c[0].CPU <= 0 {
			t.Errorf("cell %d: %+v", i, c)
		}
	}
	for _, m := range append(results.Scaleout, results.Compaction...) {
		m.check(t)
	}
}

func TestTheShadowfaxBenchmarkMovesColdRecordsInEveryWay(t *testing.T) {
	var results struct{ Scaleout []scaleout }
	benchmark(t, &results, "bench", "shadowfax", "--parts", "scaleout", "--records", "50k", "--clients", "16", "--calm", "300ms", "--after", "300ms")
	if len(results.Scaleout) != 4 {
		t.Fatalf("%d cases: %+v", len(results.Scaleout), results)
	}
	for _, m := range results.Scaleout {
		m.check(t)
		if follow := strings.Contains(m.Case, "indirect"); follow != (m.Cold > 0) {
			t.Errorf("%s: %d records follow", m.Case, m.Cold)
		}
	}
}

func TestTheRocksteadyBenchmarkMovesRecordsInEveryMode(t *testing.T) {
	var results struct {
		Rounds []struct {
			System, Mode, Failed string
			Skew                 float64
			Moved                int   `json:"records_moved"`
			Served               int64 `json:"served_ns"`
			Took                 int64 `json:"took_ns"`
			PriorityKeys         int   `json:"priority_keys"`
			Errors               map[string]int
			Series               []json.RawMessage
			Calm                 struct {
				Operations int `json:"operations"`
			}
		}
		Ends []struct {
			Pull   float64 `json:"pull_mb_per_second"`
			Replay float64 `json:"replay_mb_per_second"`
		} `json:"ends_alone"`
		Verdicts []json.RawMessage
	}
	benchmark(t, &results, "bench", "rocksteady", "--records", "20k", "--redis-records", "2k", "--rate", "1000", "--rounds", "1", "--tries", "1",
		"--calm", "300ms", "--skews", "0,0.99", "--alone", "128")
	modes := map[string]int{}
	for _, r := range results.Rounds {
		modes[r.System+" "+r.Mode]++
		if r.Failed != "" || len(r.Errors) != 0 || r.Moved == 0 || r.Served <= 0 || r.Took < r.Served || len(r.Series) == 0 {
			t.Errorf("%s %s, skew %g: %+v", r.System, r.Mode, r.Skew, r)
		}
		if r.Mode == "none" && r.PriorityKeys != 0 {
			t.Errorf("%d keys were asked for without priority pulls", r.PriorityKeys)
		}
	}
	for _, mode := range []string{"ostro async", "ostro sync", "ostro none", "ostro no-sample", "ostro late", "redis reshard"} {
		want := 1
		if mode == "ostro async" {
			want = 2 // skews
		}
		if modes[mode] != want {
			t.Errorf("%s: %d rounds, want %d", mode, modes[mode], want)
		}
	}
	if len(results.Ends) != 2 || results.Ends[0].Pull <= 0 || results.Ends[1].Replay <= 0 || len(results.Verdicts) == 0 {
		t.Errorf("the two ends alone: %+v; %d claims", results.Ends, len(results.Verdicts))
	}
}
