package bench

import (
	"testing"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
)

// tailwindPair is a case in both modes, where calls take so many times as long, and backups so much.
func tailwindPair(c tailwindCase, times float64, cpu float64) []tailwindCell {
	round := func(rate float64, p50, p99 time.Duration, cpu float64) []tailwindRound {
		return []tailwindRound{{OpsPerSecond: rate, Put: workload.Summary{P50: p50, P99: p99}, BackupCPU: cpu}}
	}
	slow := func(d time.Duration) time.Duration { return time.Duration(float64(d) * times) }
	return []tailwindCell{
		{tailwindCase: c, Mode: "shm", Rounds: round(1000*times, time.Millisecond, 4*time.Millisecond, cpu)},
		{tailwindCase: c, Mode: "rpc", Rounds: round(1000, slow(time.Millisecond), slow(4*time.Millisecond), 1)},
	}
}

func TestTheTailwindClaimIsJudgedAtHalfWritesAndMostClients(t *testing.T) {
	at := func(writes, primaries, clients int, offered float64) tailwindCase {
		return tailwindCase{Writes: writes, Primaries: primaries, Clients: clients, Offered: offered}
	}
	o := &tailwindOutcome{Nodes: 4, Modes: []string{"shm", "rpc"}}
	o.Cells = append(o.Cells, tailwindPair(at(50, 1, 1, 0), 9, 0.1)...)
	o.Cells = append(o.Cells, tailwindPair(at(50, 1, 64, 0), 1.2, 0.2)...)
	o.Cells = append(o.Cells, tailwindPair(at(50, 4, 64, 0), 1.4, 0)...)
	o.Cells = append(o.Cells, tailwindPair(at(100, 1, 64, 0), 9, 0.1)...)
	o.Paced = append(o.Paced, tailwindPair(at(50, 1, 64, 500), 2.5, 0.3)...)
	o.Paced = append(o.Paced, tailwindPair(at(50, 1, 64, 800), 1.6, 0.4)...)
	o.Paced = append(o.Paced, tailwindPair(at(50, 4, 64, 500), 3, 0)...)
	o.judge()
	var got []string
	for _, v := range o.Verdicts {
		got = append(got, v.Holds)
	}
	want := []string{
		"yes", "yes", "yes", // four primaries: operations, one load
		"NO", "yes", "yes", "yes", "NO", "NO", // one: operations, two loads, backups at the worse of them
	}
	if len(got) != len(want) {
		t.Fatalf("%d verdicts: %+v", len(got), o.Verdicts)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %s", o.Verdicts[i], want[i])
		}
	}
}

func TestNothingIsJudgedWithoutCallsToCompare(t *testing.T) {
	o := &tailwindOutcome{Nodes: 4, Modes: []string{"rpc", "shm"}}
	o.Cells = tailwindPair(tailwindCase{Writes: 50, Primaries: 1, Clients: 64}, 2, 0.1)
	if o.judge(); len(o.Verdicts) != 0 {
		t.Fatalf("judged: %+v", o.Verdicts)
	}
}
