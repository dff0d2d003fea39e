package bench

import (
	"fmt"
	"time"

	"github.com/ostrodb/ostro/bench/plot"
	"github.com/ostrodb/ostro/bench/workload"
)

func (o *largerOutcome) tables() []table {
	t := table{
		title: fmt.Sprintf("%s records of %d B: %s of log, %s of memory allowed (%s resident, %s on disk)",
			grouped(int64(o.Records)), o.RecordBytes, bytesShort(o.DataBytes), bytesShort(o.BudgetBytes),
			bytesShort(o.Resident.Total), bytesShort(o.DiskBytes)),
		names: 2,
		head:  append([]string{"what", "memory"}, roundsHead...),
	}
	base := respResult{Rounds: o.HotWhole}
	for _, row := range []struct {
		what, memory string
		rounds       []respRound
	}{
		{"GET, hot hundredth", "for all", o.HotWhole},
		{"GET, hot hundredth", "the budget", o.HotPart},
		{"GET, all uniformly", "the budget", o.Cold},
	} {
		t.add(append([]string{row.what, row.memory}, roundsRow(respResult{Rounds: row.rounds}, base)...)...)
	}
	for _, row := range []struct {
		what string
		rate float64
	}{
		{"SET, every record", o.Rewrite},
		{"GET, every record compared", o.ReadBack},
		{"the same after kill -9", o.ReadAgain},
	} {
		t.add(row.what, "the budget", rate(row.rate), "-", "-", "-", "-", "-", "-")
	}
	return []table{t}
}

// roundsHead names what roundsRow tells of the rounds of one server beside those
// of another.
var roundsHead = []string{"ops/s", "±", "ratio", "p50", "p99", "p99.9", "server CPU/op"}

func roundsRow(r, base respResult) []string {
	return []string{
		rate(r.rate()),
		fmt.Sprintf("%.0f%%", 50*spread(figures(r.Rounds, func(e respRound) float64 { return e.OpsPerSecond }))),
		times(r.rate() / base.rate()),
		r.latency(func(s workload.Summary) time.Duration { return s.P50 }),
		r.latency(func(s workload.Summary) time.Duration { return s.P99 }),
		r.latency(func(s workload.Summary) time.Duration { return s.P999 }),
		decimals(r.cpu()/1e3, 2) + " µs",
	}
}

func (o *largerOutcome) notes() []string {
	return []string{
		"every record was read back and compared, before the kill and after it",
		fmt.Sprintf("after kill -9 the server answered %s after its start", short(o.Ready)),
		"hot rounds alternate between a server with memory for all and one with the budget",
	}
}

func (o *largerOutcome) chart(where string) []byte {
	return plot.Bars{
		Title:    fmt.Sprintf("Data %.1f times the memory budget", float64(o.DataBytes)/float64(o.BudgetBytes)),
		Subtitle: where, Unit: "operations per second",
		Rows: []string{"hot reads, memory for all", "hot reads", "uniform reads", "rewrite", "read back", "read back after kill -9"},
		Series: []plot.Series{{Name: "Ostro", Values: []float64{
			respResult{Rounds: o.HotWhole}.rate(), respResult{Rounds: o.HotPart}.rate(), respResult{Rounds: o.Cold}.rate(),
			o.Rewrite, o.ReadBack, o.ReadAgain,
		}}},
	}.SVG()
}
